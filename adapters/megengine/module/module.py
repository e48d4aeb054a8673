"""``Module``: layers that hold parameters and other layers (source: MegEngine 1.13.0, ``megengine.module.module``)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from collshim.errors import ArgumentTypeError, CollshimError, also
from collshim.megengine.core.tensor.values import require
from collshim.megengine.module import _states
from collshim.megengine.tensor import Parameter, Tensor
from collshim.megengine.utils.hook import HookHandler

__all__ = ["Module"]

Leaf: TypeAlias = "Tensor | Module"


class Module:
    """The base class of layers; a layer holds tensors and modules in attributes, lists, tuples and dicts.

    Parameters are in the order of their names; a parameter's dotted name is the path to it. A parameter that is held
    twice counts once.

    Args:
        name: the name of the module.
    """

    def __init__(self, name: str | None = None) -> None:
        require(
            name is None or bool(isinstance(name, str) and name.strip()), "Module's name must be a non-empty string"
        )
        self._modules: list[str] = []
        self.name = name
        self.training = True
        self.quantize_disabled = False
        self._forward_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self._forward_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Compute the layer; subclasses implement this."""
        raise NotImplementedError

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call ``forward``, with the hooks before and after it."""
        for hook in list(self._forward_pre_hooks.values()):
            changed = hook(self, inputs)
            if changed is not None:
                inputs = changed if isinstance(changed, tuple) else (changed,)
        outputs = self.forward(*inputs, **kwargs)
        for hook in list(self._forward_hooks.values()):
            changed = hook(self, inputs, outputs)
            outputs = outputs if changed is None else changed
        return outputs

    def register_forward_pre_hook(self, hook: Callable[..., Any]) -> HookHandler:
        """Call ``hook(module, inputs)`` before every forward; its result, unless None, replaces the inputs."""
        return HookHandler(self._forward_pre_hooks, hook)

    def register_forward_hook(self, hook: Callable[..., Any]) -> HookHandler:
        """Call ``hook(module, inputs, outputs)`` after every forward; its result, unless None, replaces the outputs."""
        return HookHandler(self._forward_hooks, hook)

    def parameters(self, recursive: bool = True, **kwargs: Any) -> Iterator[Parameter]:
        """Return the parameters, including those of inner modules unless ``recursive`` is False."""
        return (leaf for _, leaf in self._leaves(Parameter, recursive))

    def named_parameters(
        self, prefix: str | None = None, recursive: bool = True, **kwargs: Any
    ) -> Iterator[tuple[str, Parameter]]:
        """Return the parameters, each with its name."""
        return self._leaves(Parameter, recursive, prefix)

    def buffers(self, recursive: bool = True, **kwargs: Any) -> Iterator[Tensor]:
        """Return the tensors that are not parameters."""
        return (leaf for _, leaf in self.named_buffers(recursive=recursive))

    def named_buffers(
        self, prefix: str | None = None, recursive: bool = True, **kwargs: Any
    ) -> Iterator[tuple[str, Tensor]]:
        """Return the tensors that are not parameters, each with its name."""
        found = self._leaves(Tensor, recursive, prefix)
        return ((name, leaf) for name, leaf in found if not isinstance(leaf, Parameter))

    def tensors(self, recursive: bool = True, **kwargs: Any) -> Iterator[Tensor]:
        """Return the parameters and buffers."""
        return (leaf for _, leaf in self._leaves(Tensor, recursive))

    def named_tensors(
        self, prefix: str | None = None, recursive: bool = True, **kwargs: Any
    ) -> Iterator[tuple[str, Tensor]]:
        """Return the parameters and buffers, each with its name."""
        return self._leaves(Tensor, recursive, prefix)

    def children(self, **kwargs: Any) -> Iterator[Module]:
        """Return the modules directly in this one."""
        return (leaf for _, leaf in self._leaves(Module, False))

    def named_children(self, **kwargs: Any) -> Iterator[tuple[str, Module]]:
        """Return the modules directly in this one, each with its name."""
        return self._leaves(Module, False)

    def modules(self, **kwargs: Any) -> Iterator[Module]:
        """Return the module itself and all modules in it."""
        return (leaf for _, leaf in self.named_modules())

    def named_modules(self, prefix: str | None = None, **kwargs: Any) -> Iterator[tuple[str, Module]]:
        """Yield the module itself and all modules in it, each with its name."""
        yield prefix or "", self
        yield from self._leaves(Module, True, prefix)

    def apply(self, fn: Callable[[Module], Any]) -> None:
        """Call ``fn`` with each of ``modules``."""
        for module in self.modules():
            fn(module)

    def zero_grad(self) -> None:
        """Set the existing gradients of parameters to zero."""
        for parameter in self.parameters():
            if parameter.grad is not None:
                parameter.grad.reset_zero()

    def train(self, mode: bool = True, recursive: bool = True) -> None:
        """Set ``training``, and in inner modules too unless ``recursive`` is False."""
        for module in self.modules() if recursive else [self]:
            module.training = mode

    def eval(self) -> None:
        """Set ``training`` to False."""
        self.train(False)

    def disable_quantize(self, value: bool = True) -> None:
        """Store the switch, which has no effect: quantization does not exist here."""
        for module in self.modules():
            module.quantize_disabled = value

    def state_dict(
        self, rst: dict[str, Any] | None = None, prefix: str = "", keep_var: bool = False
    ) -> OrderedDict[str, Any]:
        """Return parameters and buffers by their names, as arrays, or as tensors with ``keep_var``.

        The tensors of normalizations are flattened.
        """
        result: OrderedDict[str, Any] = OrderedDict(rst or {})
        for name, holder, tensor in self._states(prefix):
            state = tensor if keep_var else tensor.numpy()
            result[name] = state.reshape(-1) if holder._has_flat_states else state
        return result

    def load_state_dict(self, state_dict: Any, strict: bool = True) -> None:
        """Load the values of a ``state_dict``.

        Args:
            state_dict: arrays by name; or a function that takes a name and the tensor, and returns an array, or None to
                leave the tensor unchanged.
            strict: whether names that only one side has are refused instead of logged.

        Raises:
            KeyError: ``strict`` is True, and only one side has some names.
            ValueError: an array has a wrong shape, or ``state_dict`` is neither a dictionary nor a function.
            AssertionError: a value is not an array.
        """
        _states.load(list(self._states("")), state_dict, strict)

    _has_flat_states = False

    def _states(self, prefix: str) -> Iterator[tuple[str, Module, Tensor]]:
        """Yield name, module and tensor of each parameter and buffer: this module's first, then those of inner ones."""
        for name, tensor in self._leaves(Tensor, False):
            yield prefix + name, self, tensor
        for name, module in self._leaves(Module, False):
            yield from module._states(f"{prefix}{name}.")

    def _leaves(
        self, kind: type, recursive: bool, prefix: str | None = None, seen: set[int] | None = None
    ) -> Iterator[tuple[str, Any]]:
        """Yield the module's contents of one kind with their names, each once."""
        seen = {id(self)} if seen is None else seen
        start = f"{prefix}." if prefix else ""
        for key in sorted(vars(self)):
            for name, leaf in _expanded(key, vars(self)[key]):
                if id(leaf) in seen:
                    continue
                seen.add(id(leaf))
                if isinstance(leaf, kind):
                    yield start + name, leaf
                if recursive and isinstance(leaf, Module):
                    yield from leaf._leaves(kind, recursive, start + name, seen)

    def _flatten(
        self,
        *,
        recursive: bool = True,
        with_key: bool = False,
        prefix: str | None = None,
        predicate: Callable[[Any], bool] = lambda _: True,
    ) -> Iterator[Any]:
        """Yield the tensors and modules in this one that satisfy ``predicate``, each with its name if ``with_key``."""
        for name, leaf in self._leaves(object, recursive, prefix):
            if predicate(leaf):
                yield (name, leaf) if with_key else leaf

    def __setattr__(self, name: str, value: Any) -> None:
        modules: list[str] | None = self.__dict__.get("_modules")
        if name == "_modules":
            pass
        elif isinstance(value, Module | list | tuple | dict):
            if modules is None:
                raise also(CollshimError, AttributeError)("cannot assign module before Module.__init__() call")
            if name not in modules:
                modules.append(name)
        elif modules is not None and name in modules:
            modules.remove(name)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        if name in self.__dict__.get("_modules", ()):
            self._modules.remove(name)
        super().__delattr__(name)

    def _module_info_string(self) -> str:
        """Return the part of ``repr`` about the module itself."""
        return ""

    def __repr__(self) -> str:
        info = self._module_info_string()
        parts = [
            f"({key}): " + repr(leaf).replace("\n", "\n  ")
            for name in self._modules
            for key, leaf in _expanded(name, vars(self)[name])
            if isinstance(leaf, Module)
        ]
        if not parts:
            return f"{type(self).__name__}({info})"
        lines = [*([info] if info else []), *parts]
        return f"{type(self).__name__}(\n  " + "\n  ".join(lines) + "\n)"


def _expanded(name: str, held: Any) -> Iterator[tuple[str, Leaf]]:
    """Yield the tensors and modules in an attribute's value, with their names.

    Raises:
        AssertionError: a dictionary has a key that is not text.
    """
    if isinstance(held, Tensor | Module):
        yield name, held
    elif isinstance(held, list | tuple | dict):
        items = ((key, held[key]) for key in sorted(held)) if isinstance(held, dict) else enumerate(held)
        for key, part in items:
            for inner, leaf in _expanded(str(key), part):
                if isinstance(held, dict) and not isinstance(key, str):
                    raise also(ArgumentTypeError, AssertionError)(
                        f"keys for Tensor and Module must be str, error key: {key}"
                    )
                yield f"{name}.{inner}", leaf
