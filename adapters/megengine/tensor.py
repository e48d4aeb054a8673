"""``Tensor`` and ``Parameter`` (source: MegEngine 1.13.0, ``megengine.tensor``)."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np
import torch

from collshim.arrays import register_kind, to_numpy
from collshim.errors import ArgumentTypeError, ArgumentValueError, CollshimError, also
from collshim.megengine._native import become_native
from collshim.megengine._recording import records
from collshim.megengine.core.tensor import array_method, slopes
from collshim.megengine.core.tensor.dtype import narrowed, numpy_dtype, torch_dtype
from collshim.megengine.core.tensor.values import Value, Valued, booleans, operands, value_of
from collshim.megengine.device import CompNode, get_default_device, is_valid, torch_device

__all__ = ["Parameter", "Tensor", "tensor"]


def computes(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a function of torch tensors so that it takes and returns ``Tensor`` objects.

    Its computation has a graph only while a ``GradManager`` records on this rank.
    """

    @functools.wraps(function)
    def computed(*args: Any, **kwargs: Any) -> Any:
        device = next((arg._device for arg in (*args, *kwargs.values()) if isinstance(arg, Valued)), None)
        with torch.set_grad_enabled(records() and torch.is_grad_enabled()), _torch_errors():
            values = [_unwrapped(arg) for arg in args]
            return wrapped(function(*values, **{key: _unwrapped(arg) for key, arg in kwargs.items()}), device)

    return computed


@contextmanager
def _torch_errors() -> Iterator[None]:
    """Raise torch's errors about indices and arguments as RuntimeErrors too, which MegEngine raises."""
    try:
        yield
    except CollshimError:
        raise
    except IndexError as error:
        raise also(ArgumentValueError, RuntimeError)(str(error)) from error
    except TypeError as error:
        raise also(ArgumentTypeError, RuntimeError)(str(error)) from error


def _unwrapped(argument: Any) -> Any:
    if isinstance(argument, Valued):
        return argument._value
    if isinstance(argument, np.ndarray):
        return value_of(argument)
    if type(argument) in (list, tuple) and any(isinstance(part, Valued | np.ndarray) for part in argument):
        return type(argument)(_unwrapped(part) for part in argument)
    return argument


def wrapped(result: Any, device: str | None = None) -> Any:
    """Wrap each torch tensor in a ``Tensor`` on the device of this name; None for the default device."""
    if isinstance(result, torch.Tensor):
        return Tensor._of(narrowed(result), device or get_default_device())
    if isinstance(result, list | tuple):
        return type(result)(wrapped(part, device) for part in result)
    return result


def _binary(function: Callable[..., Value], reverse: bool = False, floats: bool = False) -> Callable[..., Any]:
    def compute(own: Any, other: Any) -> Value:
        return function(*operands(*((other, own) if reverse else (own, other)), floats=floats))

    return computes(compute)


def _logical(function: Callable[..., Value], reverse: bool = False) -> Callable[..., Any]:
    def compute(own: Any, other: Any) -> Value:
        return function(*booleans(*(value_of(one) for one in ((other, own) if reverse else (own, other)))))

    return computes(compute)


def _inverted(value: Value) -> Value:
    return torch.logical_not(*booleans(value))


def _in_place(method: Callable[..., Any]) -> Callable[..., Any]:
    def compute(self: Tensor, other: Any) -> Tensor:
        self._reset(method(self, other))
        return self

    return compute


_cast, _reshaped, _transposed = (
    computes(function) for function in (torch.Tensor.to, array_method.reshape, array_method.transpose)
)
_got, _set = computes(array_method.get_item), computes(array_method.set_item)


class Tensor(Valued):
    """An array on a device; results computed from it are new tensors, which share no memory with it.

    ``x += y`` and ``x[...] = y`` replace this object's value. All references to the object see the new value, but
    earlier results do not change.

    Args:
        data: a tensor, array, number or list; None for a tensor without elements. 64-bit numbers become 32-bit;
            unsigned integers may have at most 16 bits.
        dtype: a NumPy dtype or its name; RuntimeError for a dtype that MegEngine lacks, or if ``data`` is a tensor with
            a different dtype.
        device: the name of a device; None for the default device.
        is_const, no_cache, format: have no effect.
        name: the value of the attribute ``name``.
    """

    grad: Tensor | None = None
    dmap_callback: Any = None
    _short_name: str | None = None
    __array_priority__ = 1000  # arithmetic with NumPy arrays uses this class's operators

    def __init__(
        self,
        data: Any,
        dtype: Any = None,
        device: str | None = None,
        is_const: bool = False,
        no_cache: bool = False,
        name: str | None = None,
        format: str = "default",
    ) -> None:
        become_native()
        value = value_of([] if data is None else data).detach()
        if dtype is not None:
            wanted = torch_dtype(dtype)
            if isinstance(data, Valued) and value.dtype is not wanted:
                raise also(ArgumentTypeError, RuntimeError)(f"dtype is {dtype}, data's is {value.dtype}: use astype")
            value = value.to(wanted)
        own = data._device if isinstance(data, Valued) and device is None else device or get_default_device()
        self._device = str(own)
        self._value = value.to(torch_device(self._device), copy=isinstance(data, torch.Tensor))
        self.name = name or ""

    @staticmethod
    def _of(value: Value, device: str) -> Tensor:
        result = object.__new__(Tensor)
        result._value, result._device, result.name = value, device, ""
        return result

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        return tuple(self._value.shape)

    _tuple_shape = shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype, as a NumPy dtype."""
        dtype: np.dtype[Any] = numpy_dtype(self._value.dtype)
        return dtype

    @property
    def device(self) -> CompNode:
        """The name of the device with the stream, such as ``"xpux:0"``."""
        return CompNode(self._device)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._value.dim()

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._value.numel()

    @property
    def T(self) -> Tensor:
        """The tensor with its axes in reverse order."""
        return self.transpose()

    @property
    def format(self) -> str:
        """``"default"``: axes are in their usual order."""
        return "default"

    @property
    def requires_grad(self) -> NoReturn:
        """Raises AttributeError, as in MegEngine: ``GradManager.attach`` selects the tensors that need a gradient."""
        raise also(CollshimError, AttributeError)("requires_grad is reserved for future use: attach to a GradManager")

    @property
    def qparams(self) -> NoReturn:
        """Raises AttributeError: quantization does not exist here."""
        raise also(CollshimError, AttributeError)("qparams: collshim.megengine has no quantization")

    def numpy(self) -> np.ndarray[Any, Any]:
        """Return the values as a read-only array."""
        array = to_numpy(self._value)
        array.flags.writeable = False
        return array

    def item(self, *args: Any) -> Any:
        """Return one element as a Python number; AssertionError if there are several and no index selects one."""
        return self.numpy().item(*args) if args else array_method.only_element(self._value)

    def tolist(self) -> Any:
        """Return the values as nested lists."""
        return self._value.tolist()

    def detach(self) -> Tensor:
        """Return a tensor with the same values that is detached from the graph."""
        return Tensor._of(self._value.detach(), self._device)

    def astype(self, dtype: Any) -> Tensor:
        """Return a tensor with the values converted to ``dtype``; RuntimeError for a dtype that MegEngine lacks."""
        result: Tensor = _cast(self, torch_dtype(dtype))
        return result

    def to(self, device: str) -> Tensor:
        """Return a tensor with the values on the device of this name; ValueError for an invalid name."""
        if not is_valid(device):
            raise ArgumentValueError(f"invalid device name {device}: should be a name such as 'xpux', 'gpu0' or 'cpu0'")
        result: Tensor = _cast(self, torch_device(device))
        result._device = str(device)
        return result

    def reshape(self, *shape: Any) -> Tensor:
        """Reshape, see ``functional.reshape``; the lengths are a list, or separate arguments."""
        result: Tensor = _reshaped(self, shape[0] if len(shape) == 1 else shape)
        return result

    def transpose(self, *pattern: Any) -> Tensor:
        """Permute the axes, see ``functional.transpose``; without a pattern, reverse their order."""
        given = pattern[0] if len(pattern) == 1 and not isinstance(pattern[0], int) else pattern
        result: Tensor = _transposed(self, given if len(given) else range(self.ndim - 1, -1, -1))
        return result

    flatten = computes(array_method.flatten)
    sum = computes(array_method.sum)
    mean = computes(array_method.mean)
    prod = computes(array_method.prod)
    max = computes(array_method.max)
    min = computes(array_method.min)
    _broadcast = computes(array_method.broadcast_to)

    def _reset(self, other: Any) -> None:
        """Replace the value by another tensor's value, or by an array converted to this dtype."""
        found = other if isinstance(other, Tensor) else Tensor(other, dtype=self.dtype, device=self._device)
        self._value, self._device = found._value, found._device

    def set_value(self, value: Any) -> None:
        """Replace the value by another tensor's value, or by an array converted to this dtype."""
        self._reset(value)

    def reset_zero(self) -> None:
        """Set the value to zeros."""
        self._value = torch.zeros_like(self._value)

    def __getitem__(self, index: Any) -> Tensor:
        result: Tensor = _got(self, array_method.plain_index(index))
        return result

    def __setitem__(self, index: Any, value: Any) -> None:
        self._reset(_set(self, array_method.plain_index(index), value))

    def __len__(self) -> int:
        if not self.ndim:
            raise ArgumentTypeError("ndim is 0")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        return (self[place] for place in range(len(self)))

    def __hash__(self) -> int:
        return id(self)

    def __bool__(self) -> bool:
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __index__(self) -> int:
        return operator.index(self.item())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        array = self.numpy()
        return array.copy() if dtype is None else array.astype(dtype)

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Tensor:
        """Return the result of a NumPy function as a tensor of this class."""
        return type(self)(array)

    def __dlpack__(self, **options: Any) -> Any:
        return self._value.detach().__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._value.__dlpack_device__()

    def __reduce__(self) -> Any:
        return _restored, (type(self), self.numpy(), self._device, self.name)

    def __repr__(self) -> str:
        with np.printoptions(precision=4, suppress=False):
            numbers = str(self.numpy())
        kind = "" if self.dtype == np.float32 else f", dtype={self.dtype.name}"
        return f"{type(self).__name__}({numbers}{kind}, device={self.device})"

    __add__, __radd__ = _binary(torch.add), _binary(torch.add, reverse=True)
    __sub__, __rsub__ = _binary(torch.sub), _binary(torch.sub, reverse=True)
    __mul__, __rmul__ = _binary(torch.mul), _binary(torch.mul, reverse=True)
    __truediv__, __rtruediv__ = _binary(torch.true_divide, floats=True), _binary(torch.true_divide, True, floats=True)
    __floordiv__, __rfloordiv__ = _binary(slopes.floor_divide), _binary(slopes.floor_divide, reverse=True)
    __mod__, __rmod__ = _binary(array_method.mod), _binary(array_method.mod, reverse=True)
    __pow__, __rpow__ = _binary(torch.pow, floats=True), _binary(torch.pow, True, floats=True)
    __matmul__, __rmatmul__ = _binary(array_method.matmul), _binary(array_method.matmul, reverse=True)
    __lshift__, __rlshift__ = _binary(torch.bitwise_left_shift), _binary(torch.bitwise_left_shift, reverse=True)
    __rshift__, __rrshift__ = _binary(torch.bitwise_right_shift), _binary(torch.bitwise_right_shift, reverse=True)
    __and__, __rand__ = _logical(torch.bitwise_and), _logical(torch.bitwise_and, reverse=True)
    __or__, __ror__ = _logical(torch.bitwise_or), _logical(torch.bitwise_or, reverse=True)
    __xor__, __rxor__ = _logical(torch.bitwise_xor), _logical(torch.bitwise_xor, reverse=True)
    __eq__, __ne__ = _binary(torch.eq), _binary(torch.ne)
    __lt__, __le__ = _binary(torch.lt), _binary(torch.le)
    __gt__, __ge__ = _binary(torch.gt), _binary(torch.ge)
    __iadd__, __isub__, __imul__ = _in_place(__add__), _in_place(__sub__), _in_place(__mul__)
    __itruediv__, __ifloordiv__ = _in_place(__truediv__), _in_place(__floordiv__)
    __imod__, __ipow__, __imatmul__ = _in_place(__mod__), _in_place(__pow__), _in_place(__matmul__)
    __ilshift__, __irshift__ = _in_place(__lshift__), _in_place(__rshift__)
    __iand__, __ior__, __ixor__ = _in_place(__and__), _in_place(__or__), _in_place(__xor__)
    __neg__, __abs__, __invert__ = computes(torch.neg), computes(slopes.abs_of), computes(_inverted)
    __round__, __floor__, __ceil__ = computes(array_method.round), computes(slopes.floor), computes(slopes.ceil)

    def __pos__(self) -> Tensor:
        return self


tensor = Tensor
"""The same class, as in MegEngine."""


class Parameter(Tensor):
    """A tensor that modules find and optimizers update; results computed from it are of class ``Tensor``."""


def _restored(kind: type[Tensor], array: np.ndarray[Any, Any], device: str, name: str) -> Tensor:
    result = kind(array, device=device)
    result.name = name
    return result


register_kind(Tensor, wrapped)
