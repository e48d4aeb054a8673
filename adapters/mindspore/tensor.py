"""``mindspore.Tensor`` (source: MindSpore 2.10.0): a tensor of torch's, with MindSpore's methods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import torch

from collshim.adapting.refusing import refuse
from collshim.arrays import Array, as_torch, is_array, to_numpy
from collshim.mindspore.common.dtype import torch_dtype
from collshim.mindspore.printing import text
from collshim.work import Work

__all__ = ["Tensor"]
_UNWRAPPED = torch.overrides.get_default_nowrap_functions()


class _TensorType(type(torch.Tensor)):  # type: ignore[misc]  # torch's own metaclass
    """Every tensor of torch's is an instance of ``Tensor``, not of what is derived of it."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, torch.Tensor) if cls is Tensor else type.__instancecheck__(cls, instance)


class _Count(int):
    """MindSpore's number of elements, which torch's own code calls for the shape."""

    def __new__(cls, tensor: torch.Tensor) -> _Count:
        return super().__new__(cls, tensor.numel())

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor

    def __call__(self, *axis: int) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            return torch.Tensor.size(self._tensor, *axis)


class Tensor(torch.Tensor, metaclass=_TensorType):
    """A copy of ``input_data``, or ``shape`` filled by ``init``.

    Python floats become float32 and integers int64, an array keeps its dtype. What is computed of it is a ``Tensor``;
    what torch's tensors can do, it can too. It is on the CPU unless ``input_data`` is a tensor on another device.

    Args:
        input_data: a number, a list, an array or a tensor.
        dtype: of the result; MindSpore's, NumPy's or a name.
        shape: in place of ``input_data``.
        init: an initializer, with ``shape`` and ``dtype``.
        internal: accepted, as ``const_arg`` is.

    Raises:
        TypeError: no such dtype.
        ValueError: both or neither of ``input_data`` and ``init``.
    """

    _work: Work[Any] | None = None

    def __new__(
        cls,
        input_data: Any = None,
        dtype: Any = None,
        shape: Any = None,
        init: Any = None,
        internal: bool = False,
        const_arg: bool = False,
    ) -> Tensor:
        """The tensor."""
        if (input_data is None) == (init is None):
            refuse(ValueError, "Tensor: one of input_data and init must be given, with init a shape and a dtype")
        wanted = None if dtype is None else torch_dtype(dtype)
        if init is not None:
            sizes = (shape,) if isinstance(shape, int) else tuple(shape)
            value = as_torch(init(sizes, wanted or torch.float32))
        else:
            value = _copied(input_data, wanted)
        return torch.Tensor._make_subclass(cls, value)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        for arg in args:
            settle(arg)
        with torch._C.DisableTorchFunctionSubclass():
            result = func(*args, **(kwargs or {}))
            return result if func in _UNWRAPPED else wrapped(result)

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]  # torch's Size prints otherwise
        """The lengths of its axes."""
        with torch._C.DisableTorchFunctionSubclass():
            return tuple(torch.Tensor.size(self))

    @property
    def size(self) -> int:  # type: ignore[override]  # a number here
        """How many elements there are."""
        return _Count(self)

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next, by axis."""
        return tuple(step * self.element_size() for step in self.stride())

    def asnumpy(self) -> np.ndarray[Any, Any]:
        """The values as a NumPy array; the same memory on the CPU."""
        settle(self)
        return to_numpy(as_torch(self))

    def numpy(self, *, force: bool = False) -> np.ndarray[Any, Any]:
        """As ``asnumpy``."""
        return self.asnumpy()

    __array_priority__ = -1
    """NumPy computes what a NumPy array stands in front of, and the result is its own, as with MindSpore 2.10.0."""

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar else array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        values = self.asnumpy()
        return values if dtype is None else values.astype(dtype)

    def astype(self, dtype: Any, copy: bool = True) -> Tensor:
        """The values in another dtype."""
        return cast(Tensor, torch.Tensor.to(self, torch_dtype(dtype)))

    def asdtype(self, dtype: Any) -> Tensor:
        """As ``astype``."""
        return self.astype(dtype)

    def copy(self) -> Tensor:
        """The same values in memory of their own."""
        return cast(Tensor, self.clone())

    def init_data(self, slice_index: Any = None, shape: Any = None, opt_shard_group: Any = None) -> Tensor:
        """Itself: values are there from the start."""
        return self

    def value(self) -> Tensor:
        """Itself."""
        return self

    def set_dtype(self, dtype: Any) -> Tensor:
        """As ``astype``."""
        return self.astype(dtype)

    def assign_value(self, value: Any) -> Tensor:
        """It holds these values."""
        return self._assigned(value)

    def expand_dims(self, axis: int) -> Tensor:
        """With an axis of length 1 there."""
        return cast(Tensor, self.unsqueeze(axis))

    def transpose(self, *axes: Any) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]  # as NumPy's
        """The axes in this order; without ``axes`` reversed."""
        order = axes[0] if len(axes) == 1 and isinstance(axes[0], list | tuple) else axes
        if len(order) == 2 and self.dim() > 2:  # torch's own code, which means a pair to swap
            return cast(Tensor, self.swapaxes(*order))
        return cast(Tensor, self.permute(*(order or range(self.dim() - 1, -1, -1))))

    def split(  # pyright: ignore[reportIncompatibleMethodOverride]  # MindSpore's names
        self, split_size_or_sections: int | Sequence[int], axis: int = 0
    ) -> tuple[Tensor, ...]:
        """Cut along ``axis``: into pieces of that length, or of those lengths."""
        sizes = split_size_or_sections if isinstance(split_size_or_sections, int) else list(split_size_or_sections)
        untyped: Any = torch.Tensor.split  # torch.split calls this method
        return cast(tuple[Tensor, ...], untyped(self, sizes, axis))

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return memo.setdefault(id(self), self._duplicate())

    def _duplicate(self) -> Any:
        return Tensor(self)

    def __str__(self) -> str:
        return str(self.asnumpy())

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]  # torch's is untyped
        settle(self)
        return text(self.detach().as_subclass(torch.Tensor))

    def __format__(self, format_spec: str) -> str:
        return format(self.asnumpy().item() if format_spec else str(self), format_spec)

    def _assigned(self, value: Any) -> Tensor:
        with torch.no_grad():
            self.copy_(_copied(value, None))
        return self


def wrapped(result: Any) -> Any:
    """``Tensor`` in place of each of torch's own tensors in a result."""
    if type(result) is torch.Tensor:
        return torch.Tensor.as_subclass(result, Tensor)
    if isinstance(result, Tensor) and type(result) is not Tensor and result.grad_fn is not None:
        return torch.Tensor.as_subclass(result, Tensor)
    if isinstance(result, list | tuple) and any(isinstance(part, torch.Tensor) for part in result):
        return type(result)(*map(wrapped, result)) if hasattr(result, "_fields") else type(result)(map(wrapped, result))
    return result


def settle(array: Any) -> None:
    """What comes into this array has come: MindSpore's streams order that before whatever reads it."""
    if issubclass(type(array), Tensor) and array._work is not None:
        work, array._work = array._work, None
        work.wait()


def comes_into(array: Array, work: Work[Any]) -> None:
    """Whoever reads this array waits for ``work`` first, where it is a ``Tensor``."""
    if issubclass(type(array), Tensor):
        array._work = work


def _copied(data: Any, dtype: torch.dtype | None) -> torch.Tensor:
    settle(data)
    if is_array(data):
        own = as_torch(data).detach()
        return own.to(dtype or own.dtype, copy=True)
    if isinstance(data, list | tuple) and any(is_array(item) for item in data):
        return torch.stack([_copied(item, dtype) for item in data])
    return torch.tensor(data, dtype=dtype)
