"""``mindspore.Tensor`` (source: MindSpore 2.10.0): a torch tensor with MindSpore's methods."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any, cast

import numpy as np
import torch

from collshim.adapting.refusing import refuse
from collshim.arrays import Array, as_torch, is_array, to_numpy
from collshim.mindspore.common.dtype import dtype_name, torch_dtype
from collshim.mindspore.indexing import places, turned
from collshim.mindspore.methods import Methods
from collshim.mindspore.mistakes import from_python, raise_as_mindspore
from collshim.mindspore.printing import text
from collshim.work import Work

__all__ = ["Tensor", "tensor"]
_UNWRAPPED = torch.overrides.get_default_nowrap_functions()


class _TensorType(type(torch.Tensor)):  # type: ignore[misc]  # torch's own metaclass
    """A metaclass that makes every torch tensor an instance of ``Tensor``, but not of its subclasses."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, torch.Tensor) if cls is Tensor else type.__instancecheck__(cls, instance)


class _Count(int):
    """MindSpore's ``Tensor.size``, the number of elements; torch's own code calls it for the shape."""

    def __new__(cls, tensor: torch.Tensor) -> _Count:
        return super().__new__(cls, tensor.numel())

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor

    def __call__(self, *axis: int) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            return torch.Tensor.size(self._tensor, *axis)


class Tensor(Methods, metaclass=_TensorType):
    """A tensor with a copy of ``input_data``, or with ``shape``, filled by ``init``.

    Gradients flow through the copy of a tensor, but not of a Parameter.

    Python floats become float32, and integers int64; an array keeps its dtype. Results computed from it are
    ``Tensor``s; it has all methods of torch tensors. It is on the CPU unless ``input_data`` is a tensor on another
    device.

    Args:
        input_data: a number, a list, an array or a tensor.
        dtype: the result's dtype: MindSpore's, NumPy's or a name.
        shape: the result's shape, with ``init``.
        init: an initializer that fills a tensor of ``shape`` and ``dtype``, instead of ``input_data``. With only a
            shape and a dtype, the tensor has no values, and its lengths may be None: it describes an input for
            ``Cell.set_inputs``.
        internal: has no effect; neither has ``const_arg``.

    Raises:
        TypeError: there is no such dtype; or ``input_data`` is none of these, and there is no ``init``.
        ValueError: both ``input_data`` and ``init`` are given; or neither is, but a shape without a dtype.
    """

    _work: Work[Any] | None = None
    _told_shape: tuple[int, ...] | None = None

    def __new__(
        cls,
        input_data: Any = None,
        dtype: Any = None,
        shape: Any = None,
        init: Any = None,
        internal: bool = False,
        const_arg: bool = False,
    ) -> Tensor:
        """Return the tensor."""
        wanted = None if dtype is None else torch_dtype(dtype)
        sizes = (shape,) if isinstance(shape, int) else tuple(() if shape is None else shape)
        if input_data is None and init is None and shape is not None and wanted is not None:
            return cls._without_values(sizes, wanted)
        if (init is not None and input_data is not None) or (init is input_data and shape is not None):
            refuse(ValueError, "Tensor: one of input_data and init must be given, with init a shape and a dtype")
        if cls is Tensor and type(input_data) is Tensor and input_data.requires_grad:
            return cast(Tensor, torch.Tensor.to(input_data, wanted or input_data.dtype, copy=True))
        value = _copy(input_data, wanted) if init is None else as_torch(init(sizes, wanted or torch.float32))
        return torch.Tensor._make_subclass(cls, value)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    @classmethod
    def _without_values(cls, sizes: tuple[int | None, ...], dtype: torch.dtype) -> Tensor:
        """Return a tensor without values, for ``set_inputs``, with the length -1 for None."""
        made = torch.Tensor._make_subclass(cls, torch.zeros([max(size or 1, 1) for size in sizes], dtype=dtype))
        made._told_shape = tuple(-1 if size is None else size for size in sizes)
        return made

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        for arg in args:
            settle(arg)
        try:
            with torch._C.DisableTorchFunctionSubclass():
                result = func(*args, **(kwargs or {}))
        except (IndexError, RuntimeError) as error:
            raise_as_mindspore(error)
        return result if func in _UNWRAPPED else wrap(result)

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]  # torch's Size prints differently
        """The lengths of the axes."""
        if self._told_shape is not None:
            return self._told_shape
        with torch._C.DisableTorchFunctionSubclass():
            return tuple(torch.Tensor.size(self))

    @property
    def size(self) -> int:  # type: ignore[override]  # a number here
        """The number of elements."""
        return _Count(self)

    @property
    def strides(self) -> tuple[int, ...]:
        """The bytes from one element to the next along each axis."""
        return tuple(step * self.element_size() for step in self.stride())

    def asnumpy(self) -> np.ndarray[Any, Any]:
        """Return the values as a NumPy array; for a tensor on the CPU, in the same memory."""
        settle(self)
        return to_numpy(as_torch(self))

    def numpy(self, *, force: bool = False) -> np.ndarray[Any, Any]:
        """Return ``asnumpy()``."""
        return self.asnumpy()

    __array_priority__ = -1
    """With a NumPy array as the left operand, NumPy computes, and the result is an array, as in MindSpore 2.10.0."""

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar else array

    def __invert__(self) -> Tensor:
        """Return ``logical_not()`` of each element, whatever the dtype."""
        return cast(Tensor, torch.logical_not(self))

    def __sub__(self, other: Any) -> Any:
        return minus(self, other) if has_boolean(self, other) else torch.Tensor.__sub__(self, other)

    def __rsub__(self, other: Any) -> Any:
        return minus(other, self) if has_boolean(self, other) else torch.Tensor.__rsub__(self, other)

    def sub(self, other: Any, *, alpha: Any = 1) -> Any:  # type: ignore[override]  # torch's has ``out``
        """Return the difference to ``alpha`` times the other value."""
        return minus(self, other if alpha == 1 else other * alpha)

    subtract = sub  # type: ignore[assignment]

    def __round__(self, digits: int = 0) -> Tensor:
        return cast(Tensor, torch.round(self, decimals=digits))

    def __reversed__(self) -> Iterator[Tensor]:
        return (cast(Tensor, self[place]) for place in range(len(self) - 1, -1, -1))

    def __getitem__(self, index: Any) -> Any:
        """Return elements; slices may have negative steps."""
        source, chosen = turned(self, index)
        return torch.Tensor.__getitem__(source, chosen)

    def __setitem__(self, index: Any, value: Any) -> None:
        """Write values, including lists and tuples of numbers, even into a parameter."""
        own = Tensor(list(value)).to(self.dtype) if isinstance(value, list | tuple) else value
        with torch.no_grad() if self.requires_grad and self.is_leaf else nullcontext():
            torch.Tensor.__setitem__(self, places(self, index), own)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        values = self.asnumpy()
        return values if dtype is None else values.astype(dtype)

    def astype(self, dtype: Any, copy: bool = True) -> Tensor:
        """Return the values in another dtype."""
        return cast(Tensor, torch.Tensor.to(self, torch_dtype(dtype)))

    def asdtype(self, dtype: Any) -> Tensor:
        """Return ``astype(dtype)``."""
        return self.astype(dtype)

    def copy(self) -> Tensor:
        """Return a copy."""
        return cast(Tensor, self.clone())

    def init_data(self, slice_index: Any = None, shape: Any = None, opt_shard_group: Any = None) -> Tensor:
        """Return the tensor itself, which has its values from the start."""
        return self

    @staticmethod
    def from_numpy(array: Any) -> Tensor:
        """Return an array's values as a tensor, in the same memory."""
        return cast(Tensor, wrap(torch.from_numpy(array)))

    has_init = False
    """Whether an initializer waits for ``init_data``; False, because tensors have their values from the start."""

    def set_const_arg(self, const_arg: bool = True) -> Tensor:
        """Return the tensor itself: nothing is compiled."""
        return self

    def fill(self, value: Any) -> Tensor:
        """Return a tensor of the same shape and dtype filled with one value."""
        return cast(Tensor, torch.full_like(self, value))

    def equal(self, other: Any) -> Tensor:  # type: ignore[override]  # torch's is one bool
        """Return whether the elements are equal, elementwise."""
        return cast(Tensor, torch.eq(self, other))

    def gather(self, *args: Any, **kwargs: Any) -> Tensor:
        """Return entries: with ``(input_indices, axis)`` like ``ops.gather``, with ``(dim, index)`` like torch."""
        given = dict(zip(("input_indices", "axis"), args, strict=False)) | kwargs
        if not isinstance(given.get("input_indices"), torch.Tensor):
            return cast(Tensor, torch.gather(self, *args, **kwargs))
        indices, place = given["input_indices"], given["axis"] % self.dim()
        picked = self.index_select(place, indices.reshape(-1))
        return cast(Tensor, picked.reshape((*self.shape[:place], *indices.shape, *self.shape[place + 1 :])))

    def value(self) -> Tensor:
        """Return the tensor itself."""
        return self

    def set_dtype(self, dtype: Any) -> torch.dtype:
        """Convert the tensor to another dtype in place, and return that dtype."""
        self.data = torch.Tensor.to(self.detach(), torch_dtype(dtype))
        return self.dtype

    def type(self, *args: Any, **kwargs: Any) -> Any:
        """Return the name of the dtype; with a dtype, the values in it."""
        return torch.Tensor.type(self, *args, **kwargs) if args or kwargs else dtype_name(self.dtype)

    def assign_value(self, value: Any) -> Tensor:
        """Copy these values into the tensor, and return it."""
        return self._assign(value)

    def expand_dims(self, axis: int) -> Tensor:
        """Return the tensor with a new axis of length 1 at ``axis``."""
        return cast(Tensor, self.unsqueeze(axis))

    def transpose(self, *axes: Any) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]  # as NumPy's
        """Return the tensor with its axes in this order; without ``axes``, in reverse order."""
        order = axes[0] if len(axes) == 1 and isinstance(axes[0], list | tuple) else axes
        if len(order) == 2 and self.dim() > 2:  # a call by torch's own code, with a pair of axes to swap
            return cast(Tensor, self.swapaxes(*order))
        return cast(Tensor, self.permute(*(order or range(self.dim() - 1, -1, -1))))

    def split(  # pyright: ignore[reportIncompatibleMethodOverride]  # MindSpore's names
        self, split_size_or_sections: int | Sequence[int], axis: int = 0
    ) -> tuple[Tensor, ...]:
        """Cut the tensor along ``axis`` into pieces of one length, or of the lengths in a list."""
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

    def _assign(self, value: Any) -> Tensor:
        with torch.no_grad():
            self.copy_(_copy(value, None))
        return self


def tensor(
    input_data: Any = None,
    dtype: Any = None,
    shape: Any = None,
    init: Any = None,
    internal: bool = False,
    const_arg: bool = False,
) -> Tensor:
    """Return a ``Tensor`` made from the same arguments."""
    return Tensor(input_data, dtype, shape, init, internal, const_arg)


def has_boolean(*values: Any) -> bool:
    """Return whether any value is a boolean, or a tensor or array of booleans."""
    return any(isinstance(each, bool) or getattr(each, "dtype", None) is torch.bool for each in values)


def minus(first: Any, second: Any) -> Any:
    """Return a difference in which booleans, which torch refuses, are 0 and 1; for two of them, whether they differ."""
    if not has_boolean(first, second):
        return wrap(torch.sub(torch.as_tensor(first), second))
    left, right = (each if isinstance(each, torch.Tensor) else torch.as_tensor(each) for each in (first, second))
    if left.dtype is torch.bool and right.dtype is torch.bool:
        return wrap(torch.logical_xor(left, right))
    if left.dtype is torch.bool:
        return wrap(torch.sub(left.to(right.dtype), right))
    return wrap(torch.sub(left, right.to(left.dtype)))


def wrap(result: Any) -> Any:
    """Convert plain torch tensors in a result to ``Tensor``."""
    if type(result) is torch.Tensor:
        return torch.Tensor.as_subclass(result, Tensor)
    if isinstance(result, Tensor) and type(result) is not Tensor and result.grad_fn is not None:
        return torch.Tensor.as_subclass(result, Tensor)
    if isinstance(result, list | tuple) and any(isinstance(part, torch.Tensor) for part in result):
        return type(result)(*map(wrap, result)) if hasattr(result, "_fields") else type(result)(map(wrap, result))
    return result


def settle(array: Any) -> None:
    """Wait for an array's pending work; in MindSpore, streams order that work before any read of the array."""
    if issubclass(type(array), Tensor) and array._work is not None:
        work, array._work = array._work, None
        work.wait()


def set_pending_work(array: Array, work: Work[Any]) -> None:
    """Make reads of ``array``, if it is a ``Tensor``, wait for ``work``."""
    if issubclass(type(array), Tensor):
        array._work = work


def _copy(data: Any, dtype: torch.dtype | None) -> torch.Tensor:
    settle(data)
    if is_array(data):
        own = as_torch(data).detach()
        return own.to(dtype or own.dtype, copy=True)
    if isinstance(data, list | tuple) and any(is_array(item) for item in data):
        return torch.stack([_copy(item, dtype) for item in data])
    return from_python(data, dtype)


def _with_numbers(name: str) -> Callable[..., Any]:
    own: Any = getattr(torch, name)

    def method(self: Tensor, other: Any) -> Any:
        return own(self, torch.tensor(other) if isinstance(other, bool | int | float) else other)

    method.__name__, method.__doc__ = name, f"Return what torch's ``{name}`` returns; ``other`` may be a number."
    return method


def _without_writing(name: str) -> Callable[..., Any]:
    compute = getattr(operator, name)

    def assign(self: Tensor, other: Any) -> Any:
        return compute(self, other)

    assign.__name__ = f"__i{name.strip('_')}__"
    assign.__doc__ = "Return a new tensor: assignments like ``+=`` leave the old one as it is."
    return assign


for _name in (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "and_",
    "or_",
    "xor",
    "lshift",
    "rshift",
):
    setattr(Tensor, f"__i{_name.strip('_')}__", _without_writing(_name))
for _name in ("atan2", "logical_and", "logical_or", "logical_xor", "maximum", "minimum"):
    setattr(Tensor, _name, _with_numbers(_name))
