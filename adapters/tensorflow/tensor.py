"""``tf.Tensor``: torch's tensor with TensorFlow's interface.

It is a subclass of ``torch.Tensor``, and results computed from it are of this class too. The differences from torch's:

    repr(), str()             <tf.Tensor: shape=(), dtype=float32, numpy=1.0>
    numpy()                   also if it requires a gradient; a copy; a NumPy scalar for shape ()
    shape                     a TensorShape: as_list(), rank, num_elements()
    x / y of integers         float64
    ref()                     a key for dictionaries
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import total_ordering
from typing import Any

import numpy as np
import torch

from collshim.errors import ArgumentTypeError
from collshim.tensorflow.derivatives import floor_divided
from collshim.tensorflow.errors import checked
from collshim.tensorflow.indexing import select
from collshim.tensorflow.operands import numbers, operand, operator_on
from collshim.tensorflow.tensor_shape import TensorShape

_SHAPE: Any = torch.Tensor.shape
_WIDE = (torch.int32, torch.int64)


class _Undefined:
    """An attribute that only tensors in graphs have, and by whose absence programs tell tensors from variables."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        raise AttributeError(f"Tensor.{self._name} is undefined when eager execution is enabled.")


class Tensor(torch.Tensor):
    """A tensor of this replica. dtypes are torch's objects."""

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call torch's function; new tensors in its result are of this class."""
        with torch._C.DisableTorchFunctionSubclass():
            result = func(*args, **(kwargs or {}))
        return result if args and result is args[0] else _adopted(result)

    name, op, graph, value_index = _Undefined(), _Undefined(), _Undefined(), _Undefined()

    @property
    def shape(self) -> Any:  # type: ignore[override]
        """The lengths of the axes."""
        with torch._C.DisableTorchFunctionSubclass():
            return TensorShape(_SHAPE.__get__(self))

    def get_shape(self) -> Any:
        """Return ``shape``."""
        return self.shape

    def set_shape(self, shape: Any) -> None:
        """Do nothing if the tensor has this shape, in which None is any length; raise ValueError otherwise."""
        if not self.shape.is_compatible_with(shape):
            raise ValueError(f"Tensor's shape {self.shape} is not compatible with supplied shape {shape}.")

    def numpy(self, *, force: bool = False) -> Any:
        """Return a copy of the values as a NumPy array, or scalar for shape (). bfloat16 becomes float32."""
        with torch._C.DisableTorchFunctionSubclass():
            values = plain(self).detach().cpu().resolve_conj().resolve_neg()
            array = (values.float() if values.dtype is torch.bfloat16 else values).numpy().copy()
        return array[()] if array.ndim == 0 else array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        array = np.asarray(self.numpy())
        return array if dtype is None else array.astype(dtype, copy=False)

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """Return the result of a NumPy function as it is: an array, not a tensor."""
        return array[()] if array.ndim == 0 else array

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Call a NumPy function with arrays in place of tensors, as for an object without NumPy's methods."""
        return function(*_arrays_of(args), **_arrays_of(kwargs))

    def __getitem__(self, index: Any) -> Any:
        return select(self, index)

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        numbers = repr(self.numpy()) if self.dim() else str(self.numpy())
        numbers = f"\n{numbers}" if "\n" in numbers else numbers
        return f"<tf.Tensor: shape={self.shape}, dtype={dtype_name(self.dtype)}, numpy={numbers}>"

    def __str__(self) -> str:
        numbers = str(self.numpy())
        numbers = f"\n{numbers}" if "\n" in numbers else numbers
        return f"tf.Tensor({numbers}, shape={self.shape}, dtype={dtype_name(self.dtype)})"

    def __format__(self, format_spec: str) -> str:
        return format(self.numpy(), format_spec)

    def item(self) -> Any:
        """Return the single element as a Python number."""
        return plain(self).detach().item()

    def tolist(self) -> Any:
        """Return the values as nested lists."""
        return plain(self).detach().tolist()

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __bool__(self) -> bool:
        if self.numel() > 1:
            raise ValueError("The truth value of an array with more than one element is ambiguous. Use any() or all()")
        return bool(self.numel()) and bool(self.item())

    def __iter__(self) -> Any:
        if self.dim() == 0:
            raise TypeError("Cannot iterate over a scalar tensor.")
        return iter(self.unbind(0))

    def __hash__(self) -> int:
        return id(self)  # torch's own code puts parameters into sets; TensorFlow refuses this

    def __index__(self) -> int:
        return int(plain(self).detach().__index__())

    @checked
    def __truediv__(self, other: Any) -> Any:
        found = operand(other, self.dtype)
        return found if found is NotImplemented else _divided(self, found)

    @checked
    def __rtruediv__(self, other: Any) -> Any:
        found = operand(other, self.dtype)
        return found if found is NotImplemented else _divided(torch.as_tensor(found, dtype=self.dtype), self)

    @checked
    def __floordiv__(self, other: Any) -> Any:
        found = operand(other, self.dtype)
        return found if found is NotImplemented else floor_divided(self, found)

    @checked
    def __rfloordiv__(self, other: Any) -> Any:
        found = operand(other, self.dtype)
        return found if found is NotImplemented else floor_divided(torch.as_tensor(found), self)

    @checked
    def __neg__(self) -> Any:
        return torch.neg(numbers(self))

    @checked
    def __abs__(self) -> Any:
        return torch.abs(numbers(self))

    __add__: Any = operator_on("__add__")
    __radd__: Any = operator_on("__radd__")
    __sub__: Any = operator_on("__sub__")
    __rsub__: Any = operator_on("__rsub__")
    __mul__: Any = operator_on("__mul__")
    __rmul__: Any = operator_on("__rmul__")
    __mod__: Any = operator_on("__mod__")
    __rmod__: Any = operator_on("__rmod__")
    __pow__: Any = operator_on("__pow__")
    __rpow__: Any = operator_on("__rpow__")
    __matmul__: Any = operator_on("__matmul__")
    __rmatmul__: Any = operator_on("__rmatmul__")
    __and__: Any = operator_on("__and__")
    __rand__: Any = operator_on("__rand__")
    __or__: Any = operator_on("__or__")
    __ror__: Any = operator_on("__ror__")
    __xor__: Any = operator_on("__xor__")
    __rxor__: Any = operator_on("__rxor__")
    __lt__: Any = operator_on("__lt__")
    __le__: Any = operator_on("__le__")
    __gt__: Any = operator_on("__gt__")
    __ge__: Any = operator_on("__ge__")
    __eq__: Any = operator_on("__eq__")
    __ne__: Any = operator_on("__ne__")

    # ``x += y`` computes ``x + y`` and gives it the name: the tensor does not change
    __iadd__, __isub__, __imul__, __imod__ = __add__, __sub__, __mul__, __mod__
    __itruediv__, __ifloordiv__, __ipow__, __imatmul__ = __truediv__, __floordiv__, __pow__, __matmul__
    __iand__, __ior__, __ixor__ = __and__, __or__, __xor__

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return memo.setdefault(id(self), _adopted(plain(self).detach().clone()))

    def ref(self) -> Reference:
        """Return a hashable reference to this tensor."""
        return Reference(self)


@total_ordering
class Reference:
    """A hashable reference to an object, equal to other references to the same object. ``tensor.ref()`` makes it.

    References can be sorted; their order means nothing.
    """

    def __init__(self, referred: Any) -> None:
        self._referred = referred

    def deref(self) -> Any:
        """Return the object."""
        return self._referred

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and other._referred is self._referred

    def __lt__(self, other: Reference) -> bool:
        return id(self._referred) < id(other._referred)

    def __hash__(self) -> int:
        return id(self._referred)

    def __repr__(self) -> str:
        return f"<Reference wrapping {self._referred!r}>"


def dtype_name(dtype: torch.dtype) -> str:
    """Return the name of a dtype, such as ``float32`` for ``torch.float32``."""
    return str(dtype).removeprefix("torch.")


def adopt(tensor: torch.Tensor) -> Tensor:
    """Convert a torch tensor to a new object with the same memory; the old object, which others may hold, stays."""
    if isinstance(tensor, Tensor):
        return tensor
    with torch._C.DisableTorchFunctionSubclass():
        return tensor.as_subclass(Tensor)


def plain(value: Any) -> Any:
    """Return a tensor of this class as a torch tensor with the same memory and graph; other values are unchanged."""
    if not isinstance(value, Tensor):
        return value
    with torch._C.DisableTorchFunctionSubclass():
        return value.as_subclass(torch.Tensor)


def _arrays_of(values: Any) -> Any:
    """Return nested tuples, lists and dicts with NumPy's arrays in place of tensors."""
    if isinstance(values, Tensor):
        return values.numpy()
    if isinstance(values, dict):
        return {key: _arrays_of(one) for key, one in values.items()}
    return type(values)(map(_arrays_of, values)) if type(values) in (list, tuple) else values


def _adopted(value: Any) -> Any:
    """Convert new tensors of torch's class to this class in place, also in tuples and lists."""
    if type(value) is torch.Tensor:
        value.__class__ = Tensor
    elif isinstance(value, tuple | list):
        for part in value:
            _adopted(part)
    return value


def _divided(numerator: Any, denominator: Any) -> Any:
    """Return the quotient; float64 for integers of 32 and 64 bits, as in TensorFlow."""
    tensors = [part for part in (numerator, denominator) if isinstance(part, torch.Tensor)]
    if all(part.dtype is torch.bool for part in tensors):
        raise ArgumentTypeError("Invalid dtype tf.bool in __truediv__")
    if all(part.dtype in _WIDE for part in tensors) and not isinstance(denominator, float):
        numerator = numerator.to(torch.float64)
    return torch.true_divide(numerator, denominator)
