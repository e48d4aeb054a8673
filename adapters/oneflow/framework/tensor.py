"""``flow.Tensor``: torch's tensor with the attributes and defaults of OneFlow 0.9.0.

It is a subclass of ``torch.Tensor``. Results of torch's functions are of this class too; ``adopt`` converts tensors
that torch itself makes, such as the parameters of a module, in place: they stay the same objects, with the same memory.
The differences from torch's class:

    numpy(), tolist(), int()    work on a tensor that requires a gradient
    softmax(), log_softmax()    take the last dimension by default
    copy_(array)                takes NumPy arrays, and returns None
    to(), cuda(), new_zeros()   take OneFlow's devices
    is_local, is_global, ...    state that every tensor here is local; global ones are refused
    type(), repr()              name OneFlow's types
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any, TypeVar, cast

import numpy as np
import torch
from torch.nn import functional

from collshim import world
from collshim.errors import ArgumentError, also
from collshim.oneflow.device_names import Device, is_device, own_device
from collshim.oneflow.framework.forms import Forms
from collshim.oneflow.global_tensors import refuse, refused_attribute

T = TypeVar("T")

_GRAD: Any = torch.Tensor.grad

_TYPES = {
    torch.float32: "FloatTensor",
    torch.float64: "DoubleTensor",
    torch.float16: "HalfTensor",
    torch.int8: "CharTensor",
    torch.uint8: "ByteTensor",
    torch.int32: "IntTensor",
    torch.int64: "LongTensor",
    torch.bool: "BoolTensor",
}


_OF_CLASSES = (functional.cross_entropy, functional.nll_loss)
"""Functions whose second argument may be class numbers: OneFlow takes int32, torch only int64."""


def _with_long_classes(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    given = dict(zip(("input", "target"), args, strict=False)) | dict(kwargs)
    target = given.get("target")
    if isinstance(target, torch.Tensor) and target.dtype is torch.int32:
        given["target"] = target.long()
    return args[2:] and (given.pop("input"), given.pop("target"), *args[2:]), given


_DTYPES: dict[str | None, Any] = {name: dtype for dtype, name in _TYPES.items()}


class Tensor(Forms):
    """A tensor of this rank: OneFlow's local tensor."""

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call torch's function; new tensors in its result are of this class."""
        if func in _OF_CLASSES:
            args, kwargs = _with_long_classes(args, kwargs or {})
        with torch._C.DisableTorchFunctionSubclass():
            result = func(*args, **(kwargs or {}))
        return result if args and result is args[0] else adopt(result)

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Make a float32 tensor from values or from a shape, as torch's class does, on OneFlow's devices."""
        return super().__new__(cls, *args, **resolve_device(kwargs))

    is_local = True
    is_eager = True
    is_global = False
    is_lazy = False
    is_consistent = refused_attribute("is_consistent")
    placement = refused_attribute("placement")
    sbp = refused_attribute("sbp")
    to_global = refuse("Tensor.to_global")
    to_local = refuse("Tensor.to_local")
    to_consistent = refuse("Tensor.to_consistent")
    local_to_global = refuse("Tensor.local_to_global")
    global_to_global = refuse("Tensor.global_to_global")

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        """Return OneFlow's text: always with the dtype, and with the device unless it is the CPU."""
        with torch._C.DisableTorchFunctionSubclass():
            shown = repr(plain(self.detach()))
        numbers = re.split(r",\s+(?:dtype|device|size)=", shown.removesuffix(")"))[0]
        if self.numel() == 0 and self.dim() > 1:
            numbers += f", size={tuple(self.shape)}"
        facts = [f"device='{self.device}'"] if self.is_cuda else []
        facts.append(f"dtype={dtype_name(self.dtype)}")
        if self.grad_fn is not None:
            facts.append(f"grad_fn=<{type(self.grad_fn).__name__}>")
        elif self.requires_grad:
            facts.append("requires_grad=True")
        return f"{numbers}, {', '.join(facts)})"

    def __format__(self, format_spec: str) -> str:
        """Format a tensor without dimensions like a number of Python."""
        return format(self.item(), format_spec) if self.dim() == 0 else super().__format__(format_spec)

    def numpy(self, *, force: bool = False) -> np.ndarray[Any, Any]:
        """Return the values as a NumPy array, even if the tensor requires a gradient; CPU memory is shared."""
        with torch._C.DisableTorchFunctionSubclass():
            values: torch.Tensor = plain(self.detach())
            return values.cpu().resolve_conj().resolve_neg().numpy()

    to_numpy = numpy

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """Return the values as an array for NumPy's functions."""
        array = self.numpy()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            if not self.is_leaf:
                raise RuntimeError("deepcopy needs a leaf tensor, and this tensor was computed: detach it first")
            values = plain(self.detach()).clone(memory_format=torch.preserve_format)
            memo[id(self)] = torch.Tensor._make_subclass(type(self), values, self.requires_grad)
            memo[id(self)].grad = None if self.grad is None else self.grad.clone()
        return memo[id(self)]

    @property
    def grad(self) -> Any:
        """The gradient, or None."""
        return adopt(_GRAD.__get__(self))

    @grad.setter
    def grad(self, value: Any) -> None:
        _GRAD.__set__(self, value)

    @grad.deleter
    def grad(self) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        _GRAD.__delete__(self)

    def backward(self, gradient: Any = None, retain_graph: bool = False, create_graph: bool = False) -> None:  # type: ignore[override]
        """Add the gradients of this tensor to the ``grad`` of the leaves that it was computed from."""
        torch.autograd.backward(self, gradient, retain_graph, create_graph)

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Return this tensor on another device, in another dtype, or both; devices are OneFlow's."""
        if args and is_device(args[0]):
            args = (own_device(args[0]), *args[1:])
        return super().to(*args, **resolve_device(kwargs))

    def cuda(self, device: Device = None, *args: Any, **kwargs: Any) -> Any:
        """Return this tensor on GPU number ``device``, or on this rank's."""
        return super().to(own_device("cuda" if device is None else device))

    def type(self, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Return the name of the tensor's type, ``oneflow.FloatTensor`` for example, or convert it to ``dtype``."""
        if dtype is not None:
            name = getattr(dtype, "__qualname__", None)
            return super().type(_DTYPES.get(name, dtype), *args, **kwargs)
        return f"oneflow.{'cuda.' if self.is_cuda else ''}{_TYPES.get(self.dtype, str(self.dtype))}"

    def copy_(self, other: Any, *args: Any) -> None:  # type: ignore[override]
        """Copy ``other``, a tensor or a NumPy array, into this tensor, even if it is a leaf; return None.

        Raises:
            AssertionError: one of the two is a local tensor, the other a global one.
        """
        require_alike(self, other)
        values = torch.as_tensor(other) if isinstance(other, np.ndarray) else other
        with torch.no_grad() if self.requires_grad and self.is_leaf else nullcontext():
            super().copy_(values, *args)

    def softmax(self, dim: int | None = None) -> Any:  # type: ignore[override]
        """Return the softmax along ``dim``, by default the last dimension."""
        return super().softmax(-1 if dim is None else dim)

    def log_softmax(self, dim: int | None = None) -> Any:  # type: ignore[override]
        """Return the logarithm of ``softmax``."""
        return super().log_softmax(-1 if dim is None else dim)

    def scatter(self, dim: int, index: Any, src: Any, *, reduce: str | None = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return a copy with ``src``, a tensor or a number, at the positions ``index`` along ``dim``."""
        more: Any = {"reduce": reduce} if reduce else {}
        return super().scatter(dim, index, src, **more)

    def scatter_(self, dim: int, index: Any, src: Any, *, reduce: str | None = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Write ``src``, a tensor or a number, at the positions ``index`` along ``dim``, in place."""
        more: Any = {"reduce": reduce} if reduce else {}
        return super().scatter_(dim, index, src, **more)

    def cast(self, dtype: torch.dtype) -> Any:
        """Return the tensor converted to ``dtype``."""
        return super().to(dtype)

    def contiguous_(self) -> Any:
        """Make the tensor contiguous, in place."""
        self.data = self.data.contiguous()
        return self


def require_alike(tensor: Tensor, other: Any) -> None:
    """Refuse a pair of a local tensor and a global one."""
    if isinstance(other, Tensor) and other.is_global != tensor.is_global:
        kind = "global" if tensor.is_global else "local"
        text = f"copy_: the tensor is {kind}, and other is not{world.place()}"
        raise also(ArgumentError, AssertionError)(text)


def dtype_name(dtype: torch.dtype) -> str:
    """Return the name of a dtype: ``oneflow.float32`` for ``torch.float32``."""
    return str(dtype).replace("torch.", "oneflow.")


def resolve_device(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return keyword arguments for a torch function: with torch's device, and without ``placement`` and ``sbp``.

    Raises:
        RuntimeError: ``placement`` or ``sbp`` is not None.
    """
    ours = dict(kwargs)
    for name in ("placement", "sbp"):
        if ours.pop(name, None) is not None:
            refuse(f"the argument {name!r}")()
    if ours.get("device") is not None:
        ours["device"] = own_device(ours["device"])
    return ours


ADOPTED: dict[type, type] = {torch.Tensor: Tensor}
"""OneFlow's class for each torch class; the module of ``Parameter`` adds its own."""


def adopt(value: T) -> T:
    """Convert torch's tensors, even in tuples, lists and dictionaries, to OneFlow's in place, and return ``value``."""
    if type(value) in ADOPTED:
        value.__class__ = ADOPTED[type(value)]
    elif isinstance(value, tuple | list):
        for entry in value:
            adopt(entry)
    elif isinstance(value, dict):
        for entry in value.values():
            adopt(entry)
    return value


def adopt_tensor(tensor: torch.Tensor) -> Tensor:
    """Convert a new tensor of torch's class to OneFlow's in place, and return it."""
    return cast(Tensor, adopt(tensor))


def plain(value: Any) -> Any:
    """Return a ``flow.Tensor`` as one of torch's class, with its memory and gradient; other values are unchanged."""
    if not isinstance(value, Tensor):
        return value
    with torch._C.DisableTorchFunctionSubclass():
        return value.as_subclass(torch.Tensor)


def adopt_like(value: Any, like: Any) -> Any:
    """Return ``value``, converted to OneFlow's class if ``like`` has that class."""
    return adopt(value) if isinstance(like, Tensor) else value


def _with_device(name: str) -> Callable[..., Any]:
    theirs = getattr(torch.Tensor, name)

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        return theirs(self, *args, **resolve_device(kwargs))

    method.__name__, method.__doc__ = name, f"torch's ``{name}``, with OneFlow's devices."
    return method


def _function_as_method(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    method.__name__, method.__doc__ = name, f"torch's function ``{name}`` of this tensor."
    return method


for _name in ("new_empty", "new_full", "new_ones", "new_tensor", "new_zeros"):
    setattr(Tensor, _name, _with_device(_name))
for _name in ("gelu", "mish", "selu", "silu", "softplus", "softsign"):
    setattr(Tensor, _name, _function_as_method(getattr(functional, _name), _name))
for _name in (
    "kaiming_normal_",
    "kaiming_uniform_",
    "orthogonal_",
    "trunc_normal_",
    "xavier_normal_",
    "xavier_uniform_",
):
    setattr(Tensor, _name, _function_as_method(getattr(torch.nn.init, _name), _name))
