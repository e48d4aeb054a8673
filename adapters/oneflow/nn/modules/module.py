"""``flow.nn.Module``, and torch's modules with OneFlow's tensors as parameters and OneFlow's devices."""

from __future__ import annotations

import ast
from typing import Any, cast

import torch

from collshim.oneflow.device_names import Device, is_device, own_device
from collshim.oneflow.framework.calls import is_global
from collshim.oneflow.framework.global_tensor import to_global
from collshim.oneflow.framework.tensor import Tensor, resolve_device
from collshim.oneflow.global_tensors import refuse
from collshim.oneflow.nn.parameter import Parameter, adopt_parameters


class _ModuleType(type):
    """A metaclass that converts the tensors of new modules to OneFlow's classes.

    torch's modules count as instances of the adapted classes.
    """

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        module = super().__call__(*args, **kwargs)
        adopt_parameters(module)
        return module

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.__dict__.get("_torch_class", ())) or super().__instancecheck__(instance)


class Module(torch.nn.Module, metaclass=_ModuleType):
    """The base class of modules: torch's, with OneFlow's devices."""

    _torch_class = torch.nn.Module

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Move this module, its parameters and buffers to another device, dtype, or both, and return the module."""
        if args and is_device(args[0]):
            args = (own_device(args[0]), *args[1:])
        return super().to(*args, **resolve_device(kwargs))

    def cuda(self, device: Device = None) -> Any:
        """Move this module to GPU number ``device``, by default this rank's GPU, and return the module."""
        return super().to(own_device("cuda" if device is None else device))

    def zero_grad(self, set_to_none: bool = False) -> None:
        """Set the gradients to zero, or with ``set_to_none`` to None."""
        super().zero_grad(set_to_none)

    def to_global(self, placement: Any = None, sbp: Any = None) -> Any:
        """Convert the parameters and buffers to global tensors, and return the module."""
        for module in self.modules():
            for name, tensor in module._parameters.items():
                if tensor is not None:
                    made = to_global(tensor.detach(), placement, sbp).as_parameter(tensor.requires_grad)
                    module._parameters[name] = cast(torch.nn.Parameter, made)
            for name, buffer in module._buffers.items():
                if buffer is not None:
                    module._buffers[name] = to_global(buffer, placement, sbp)
        return self

    def to_local(self) -> Any:
        """Convert the global parameters and buffers to this rank's parts, and return the module.

        Raises:
            RuntimeError: a parameter or buffer is a local tensor.
        """
        if not all(is_global(tensor) for tensor in (*self.parameters(), *self.buffers())):
            refuse("Module.to_local")()
        for module in self.modules():
            for name, tensor in module._parameters.items():
                if tensor is not None:
                    part: Any = cast(Any, tensor.detach()).to_local()
                    module._parameters[name] = Parameter(part, tensor.requires_grad)
            for name, buffer in module._buffers.items():
                if buffer is not None:
                    module._buffers[name] = cast(Any, buffer).to_local()
        return self

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Add the parameters and buffers themselves: the parameters in a state dict require a gradient."""
        super()._save_to_state_dict(destination, prefix, keep_vars=True)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        errors = rest[-1]
        for name, own in (*self._parameters.items(), *self._buffers.items()):
            given = state_dict.get(prefix + name)
            if own is not None and isinstance(given, Tensor) and is_global(given) != is_global(own):
                found, wanted = ("global", "local") if is_global(given) else ("local", "global")
                text = f"the checkpoint's is {found}, the module's {wanted}; convert one, or load with global_src_rank"
                errors.append(f'local / global mismatch for "{prefix}{name}": {text}')
        if not errors:
            super()._load_from_state_dict(state_dict, prefix, *rest)

    to_consistent = refuse("Module.to_consistent")


_made: dict[type, type] = {}

_PARAMETERS = {
    "BCELoss": "weight reduction",
    "BCEWithLogitsLoss": "weight reduction pos_weight",
    "ConstantPad1d": "padding value=0",
    "ConstantPad2d": "padding value=0",
    "ConstantPad3d": "padding value=0",
    "CrossEntropyLoss": "weight ignore_index reduction label_smoothing",
    "Dropout": "p inplace generator",
    "Dropout1d": "p inplace generator",
    "Dropout2d": "p inplace generator",
    "Dropout3d": "p inplace generator",
    "KLDivLoss": "reduction log_target",
    "L1Loss": "reduction",
    "MSELoss": "reduction",
    "MarginRankingLoss": "margin reduction",
    "NLLLoss": "weight ignore_index reduction",
    "RMSNorm": "normalized_shape eps=1e-05 elementwise_affine device dtype",
    "SmoothL1Loss": "reduction beta",
}
"""The parameters of constructors whose order or defaults differ from torch's."""


def adapt_class(kind: type[torch.nn.Module]) -> type[Module]:
    """Return a subclass of ``kind`` with the methods of ``Module``; always the same class for the same ``kind``.

    Its argument ``device`` accepts OneFlow's devices.
    """
    if kind not in _made:
        own = [parameter.partition("=") for parameter in _PARAMETERS.get(kind.__name__, "").split()]
        defaults = {name: ast.literal_eval(value) for name, equals, value in own if equals}

        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
            named = zip((name for name, _, _ in own), args, strict=False) if own else ()
            given = {**defaults, **dict(named), **kwargs}
            given.pop("generator", None)
            kind.__init__(self, *(() if own and len(args) <= len(own) else args), **resolve_device(given))

        members = {
            "__init__": __init__,
            "__module__": "collshim.oneflow.nn",
            "__doc__": kind.__doc__,
            "_torch_class": kind,
        }
        _made[kind] = _ModuleType(kind.__name__, (Module, kind), members)
    return _made[kind]


def adapt(name: str, value: Any) -> Any:
    """Adapt a module class of ``torch.nn`` to ``oneflow.nn``; other values are unchanged."""
    if isinstance(value, type) and issubclass(value, torch.nn.Module) and not issubclass(value, Module):
        return adapt_class(value)
    return value
