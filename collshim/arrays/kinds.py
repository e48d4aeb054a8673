"""Converts any kind of array to a torch tensor and back, so that a result is of the kind of the caller's array.

Conversions share memory if they can. Kinds are recognized by their type and by the methods they offer, never by
importing the package that they come from; so CuPy is imported by the program that makes a CuPy array, not by collshim.
TensorFlow's tensors carry gradients too (``collshim.arrays.eager_tensors``).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor
from torch.nn.parameter import is_lazy

from collshim.arrays import cupy_arrays, dlpack, eager_tensors
from collshim.arrays.dtypes import NUMPY_BITS, PARTS_OF_A_BYTE
from collshim.errors import ArgumentError, ArgumentTypeError, ArgumentValueError

Array: TypeAlias = Any
Arrays: TypeAlias = Any
"""An array, or a list of arrays."""

FromTorch: TypeAlias = Callable[[Tensor], Any]

_KINDS: dict[type, FromTorch] = {}
_NO_DISPATCH: Any = vars(Tensor)["__torch_dispatch__"]
DENSE = "a dense tensor with memory"
"""The kind of tensor that ``unsupported`` accepts."""


def register_kind(kind: type, from_torch: FromTorch) -> None:
    """Register how to make a foreign type from a torch tensor.

    This is for DLPack types without ``__array_namespace__``, and for subclasses of torch's Tensor whose results have
    another class than their inputs.

    Examples:
        >>> register_kind(MyArray, lambda tensor: MyArray.from_dlpack(tensor))  # doctest: +SKIP
    """
    _KINDS[kind] = from_torch
    _maker_of_subclass.cache_clear()


def is_array(value: object) -> bool:
    """Return whether ``value`` is a torch tensor, a NumPy array or scalar, or has ``__dlpack__``."""
    return isinstance(value, Tensor | np.ndarray | np.generic) or _offers(value, "__dlpack__")


def _offers(value: object, method: str) -> bool:
    """Return whether an instance has a method; classes do not count, since calling it on one may crash CPython 3.11."""
    return not isinstance(value, type) and hasattr(value, method)


def as_torch(array: Array, *, what: str = "array") -> Tensor:
    """Return ``array`` as a torch tensor to read from: the same memory if possible, else a copy.

    Copies are made of NumPy arrays that torch cannot view: negative strides, strides that are not a multiple of the
    item size, another byte order, read-only memory, scalars. A tensor of a subclass of torch's Tensor is returned
    without the subclass (see ``stripped``).

    Raises:
        ArgumentTypeError: not an array, or a dtype without a counterpart in torch.
    """
    if isinstance(array, Tensor):
        if is_lazy(array):
            raise ArgumentTypeError(f"{what} is an {type(array).__name__}, which has no shape yet, should be {DENSE}")
        return array if type(array) is Tensor else stripped(array)
    if isinstance(array, np.ndarray | np.generic):
        if type(array) is not np.ndarray:
            _refuse_masked(array, what)
        return _from_numpy(_viewable(np.asarray(array)), what)
    return _from_dlpack(array, what)[0]


def stripped(tensor: Tensor) -> Tensor:
    """Return ``tensor`` without its subclass, whose attributes may differ from torch's: the same memory and graph.

    Parameters are returned unchanged, as are classes that override operations below autograd (DTensor, FakeTensor):
    their memory, if they have any, is elsewhere. The result of torch's functional collectives is waited for.
    """
    if (collectives := sys.modules.get("torch.distributed._functional_collectives")) is not None:
        waits: Any = collectives
        if isinstance(tensor, waits.AsyncCollectiveTensor):
            return waits.wait_tensor(tensor)  # type: ignore[no-any-return]
    if not _is_faithful(type(tensor)):
        return tensor
    with torch._C.DisableTorchFunctionSubclass():
        return Tensor.as_subclass(tensor, Tensor)


@lru_cache(256)
def _is_faithful(kind: type[Tensor]) -> bool:
    """Return whether a class's tensors are ordinary torch tensors in memory, and differ only in Python attributes."""
    own = kind is not Tensor and not issubclass(kind, torch.nn.Parameter)
    return own and getattr(kind, "__torch_dispatch__", None) is _NO_DISPATCH


def _of_subclass(kind: type[Tensor], tensor: Tensor) -> Tensor:
    with torch._C.DisableTorchFunctionSubclass():
        if tensor.requires_grad:
            return Tensor.as_subclass(tensor, kind)
        return Tensor._make_subclass(kind, tensor)  # not a view of another tensor


def _refuse_masked(array: Any, what: str) -> None:
    if isinstance(array, np.ma.MaskedArray):
        expected = "should be an array without one: its data, or the result of its filled()"
        raise ArgumentTypeError(f"{what} is a masked array, and no collective sends its mask, {expected}")


def unsupported(tensor: Tensor) -> str | None:
    """Describe why a tensor's elements do not each lie at an address in memory; None if they do."""
    is_wrapped = is_functorch_wrapped_tensor(tensor) or torch._is_functional_tensor(tensor)
    if (is_wrapped or type(tensor) is not Tensor) and (without := _without_memory(tensor)) is not None:
        return without
    dense = tensor.layout is torch.strided and tensor.device.type != "meta"
    if dense and not tensor.is_quantized and not tensor.is_nested and tensor.dtype not in PARTS_OF_A_BYTE:
        is_whole = tensor.is_contiguous() and tensor.untyped_storage().nbytes() >= tensor.nbytes
        return None if is_whole or _has_memory(tensor) else "a tensor whose memory was freed"
    nested, quantized = ", nested" if tensor.is_nested else "", ", quantized" if tensor.is_quantized else ""
    return f"{str(tensor.dtype).removeprefix('torch.')}, {tensor.layout} on {tensor.device}{nested}{quantized}"


def _without_memory(tensor: Tensor) -> str | None:
    """Describe a tensor that has no memory of its own, which must not be accessed; None for any other tensor."""
    if is_functorch_wrapped_tensor(tensor):
        return "a tensor within a transform of torch.func (vmap, grad, jvp), which has no memory of its own"
    if torch._is_functional_tensor(tensor):
        return "a tensor within torch.func.functionalize, which has no memory of its own"
    kind = type(tensor)
    if kind is Tensor:
        return None
    if _is_fake(tensor):
        return "a FakeTensor, which has no elements"
    if not _is_faithful(kind) and tensor.layout is torch.strided and _is_empty(tensor):
        return f"a {kind.__name__}, which wraps other tensors and has no memory of its own"
    return None


def _is_empty(tensor: Tensor) -> bool:
    """Return whether a tensor has no storage, or one without an address."""
    with torch._C.DisableTorchFunctionSubclass():
        try:
            return not tensor.is_nested and not tensor.untyped_storage().data_ptr()
        except RuntimeError:  # torch raises this for a wrapper
            return True


def _is_fake(tensor: Tensor) -> bool:
    module: Any = sys.modules.get("torch._subclasses.fake_tensor")
    return module is not None and isinstance(tensor, module.FakeTensor)


def _has_memory(tensor: Tensor) -> bool:
    """Return whether the storage covers the tensor: FSDP, for example, frees storages that tensors still refer to."""
    if tensor.numel() == 0:
        return True
    last = sum((length - 1) * stride for length, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.untyped_storage().nbytes() >= (tensor.storage_offset() + last + 1) * tensor.itemsize


def as_output(array: Array, *, what: str = "output", may_overlap: bool = False) -> Tensor:
    """Return ``array`` as a torch tensor to write into: always the same memory, or an error.

    With ``may_overlap`` its elements may share memory, as those of an expanded tensor do.

    Raises:
        ArgumentTypeError: not an array; a NumPy scalar; a dtype without counterpart; sparse, quantized or on meta.
        ArgumentValueError: read-only memory, negative strides, or elements that share memory (expanded).
    """
    if isinstance(array, np.ndarray):
        if type(array) is not np.ndarray:
            _refuse_masked(array, what)
        _require_writable(array, what, may_overlap)
        return _from_numpy(array, what)
    if isinstance(array, np.generic):
        raise ArgumentTypeError(f"{what} is a NumPy scalar, should be an array that can be written")
    if isinstance(array, Tensor):
        tensor, writable = as_torch(array, what=what), True
    else:
        tensor, writable = _from_dlpack(array, what, writes=True)
    layout = unsupported(tensor)
    if layout is not None:
        raise ArgumentTypeError(f"{what} is {layout}, should be {DENSE}")
    if tensor._is_zerotensor():
        raise ArgumentValueError(f"{what} is a zero tensor of torch's, which cannot be written; its clone() can")
    if not writable:
        raise ArgumentValueError(f"{what} is a read-only {type(array).__qualname__}, should be writable")
    if not may_overlap and shares_elements(tensor):
        text = f"shape {tuple(tensor.shape)}, stride {tensor.stride()}"
        raise ArgumentValueError(
            f"{what} is expanded, or its elements overlap ({text}): several share memory, should be a tensor of its own"
        )
    return tensor


def like(array: Array) -> FromTorch | None:
    """Return a function that converts a torch result to the kind of ``array``; None if it is that kind already.

    A subclass of torch's Tensor gives results of that class; a Parameter gives tensors, as in torch.

    Raises:
        ArgumentTypeError: a foreign type without a known conversion; the text says how to register one.
    """
    if isinstance(array, Tensor):
        return None if type(array) is Tensor else _maker_of_subclass(type(array))
    if isinstance(array, np.ndarray | np.generic):
        return to_numpy if array.dtype.isnative else partial(_in_byte_order, array.dtype)
    return _maker(array)


@lru_cache(256)
def _maker_of_subclass(kind: type[Tensor]) -> FromTorch | None:
    if (registered := _registered(kind)) is not None:
        return registered
    return partial(_of_subclass, kind) if _is_faithful(kind) else None


def _registered(kind: type) -> FromTorch | None:
    return next((_KINDS[base] for base in kind.__mro__ if base in _KINDS), None)


def _in_byte_order(dtype: np.dtype[Any], tensor: Tensor) -> np.ndarray[Any, Any]:
    return to_numpy(tensor).astype(dtype)


def to_numpy(tensor: Tensor) -> np.ndarray[Any, Any]:
    """Return ``tensor`` as a NumPy array, detached; in the same memory if it is on the CPU."""
    tensor = tensor.detach().resolve_conj().resolve_neg().cpu()
    name = str(tensor.dtype).removeprefix("torch.")
    if name not in NUMPY_BITS:
        return tensor.numpy()
    import ml_dtypes

    bits = torch.uint16 if tensor.element_size() == 2 else torch.uint8
    return tensor.view(bits).numpy().view(getattr(ml_dtypes, name))


def stream_follower(array: Arrays) -> Callable[[Any], Any] | None:
    """Return an identity function that makes the stream of ``array``'s library follow torch's; None if it has none.

    CuPy needs it for its next operation on an output, and before it reuses an input's memory.
    """
    if type(array) is np.ndarray:
        return None
    first = array[0] if isinstance(array, list | tuple) and array else array
    if type(first) is Tensor or not cupy_arrays.is_cupy(first):
        return None
    return partial(cupy_arrays.follow, first)


def _never_changes(array: Array) -> bool:
    """Return whether the array's library treats arrays as immutable: they may share memory, which DLPack cannot say."""
    return type(array).__module__.partition(".")[0] in ("jax", "jaxlib", "tensorflow")


def _viewable(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the array if torch can view it; else a copy in this machine's byte order."""
    if not array.dtype.isnative:
        return array.astype(array.dtype.newbyteorder("="))
    size = max(1, array.itemsize)
    fits = array.flags.writeable and all(stride >= 0 and stride % size == 0 for stride in array.strides)
    return array if fits else array.copy()


def shares_elements(tensor: Tensor) -> bool:
    """Return whether two elements of a tensor may have the same address."""
    return not tensor.is_contiguous() and tensor.numel() > 1 and _shares(tensor.stride(), tensor.shape)


def _require_writable(array: np.ndarray[Any, Any], what: str, may_overlap: bool) -> None:
    if not array.flags.writeable:
        raise ArgumentValueError(f"{what} is a read-only NumPy array, should be writable")
    if any(stride < 0 for stride in array.strides):
        raise ArgumentValueError(f"{what} is a NumPy array with negative strides {array.strides}, should have none")
    if not may_overlap and array.size > 1 and not array.flags.c_contiguous and _shares(array.strides, array.shape):
        text = f"shape {array.shape}, strides {array.strides}"
        raise ArgumentValueError(
            f"{what} is a NumPy array that is broadcast, or whose elements overlap ({text}), should own its memory"
        )


def _shares(strides: Sequence[int], shape: Sequence[int]) -> bool:
    """Return whether a step along any axis can land on an element that smaller steps reach; in elements or bytes."""
    reach = 0
    for step, length in sorted((step, n) for step, n in zip(strides, shape, strict=True) if n > 1):
        if step <= reach:
            return True
        reach += step * (length - 1)
    return False


def _from_numpy(array: np.ndarray[Any, Any], what: str) -> Tensor:
    name = array.dtype.name
    if name in NUMPY_BITS:
        bits = torch.from_numpy(array.view(NUMPY_BITS[name]))
        return bits.view(getattr(torch, name))
    try:
        if not array.itemsize:  # torch 2.6 divides by it, which ends the process
            raise TypeError("its elements have no bytes")
        return torch.from_numpy(array)
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(
            f"{what} is a NumPy array of dtype {array.dtype} and strides {array.strides}, should be one that torch "
            f"can view: {error}"
        ) from error


def _from_dlpack(array: Array, what: str, *, writes: bool = False) -> tuple[Tensor, bool]:
    """Return the memory of an array with ``__dlpack__``; with ``writes``, also whether it may be written to."""
    if not _offers(array, "__dlpack__") or not _offers(array, "__dlpack_device__"):
        raise ArgumentTypeError(
            f"{what} is {type(array).__module__}.{type(array).__qualname__}, should be a torch tensor, a NumPy array, "
            "a CuPy array or an object with __dlpack__ and __dlpack_device__"
        )
    try:
        capsule = dlpack.capsule_of(array)
        strides, writable = dlpack.memory(capsule)
        if any(step < 0 for step in strides):
            kind = type(array).__qualname__
            raise ArgumentValueError(f"{what} is a {kind} with strides {strides}, none may be negative")
        tensor: Tensor = torch.from_dlpack(capsule)
        if eager_tensors.is_eager_tensor(array):
            tensor = eager_tensors.as_leaf(array, tensor)
        if writes and not dlpack.TAKES_VERSIONS:  # the capsule that torch took could not say so
            writable = dlpack.memory(dlpack.capsule_of(array, versioned=True)).writable
        return tensor, writable and not _never_changes(array)
    except ArgumentValueError:
        raise
    except Exception as error:  # anything that a foreign __dlpack__ may raise
        raise ArgumentTypeError(f"{what} is a {type(array).__qualname__} that torch cannot take: {error}") from error


def writable_view(array: Array) -> Tensor | None:
    """Return a tensor of the memory of an array with ``__dlpack__``, which may be written to.

    Return None for torch's and NumPy's arrays, for other objects, and if there is no such tensor.
    """
    if isinstance(array, Tensor | np.ndarray | np.generic) or not _offers(array, "__dlpack__"):
        return None
    if _never_changes(array):
        return None
    try:
        tensor, writable = _from_dlpack(array, "array", writes=True)
    except ArgumentError:
        return None
    return tensor if writable else None


def _maker(array: Array) -> FromTorch:
    if (registered := _registered(type(array))) is not None:
        return registered
    if eager_tensors.is_eager_tensor(array):
        return eager_tensors.from_torch
    if cupy_arrays.is_cupy(array):
        return cupy_arrays.from_torch
    if hasattr(array, "__array_namespace__"):
        from_dlpack: FromTorch = array.__array_namespace__().from_dlpack
        return lambda tensor: from_dlpack(tensor.detach())
    raise ArgumentTypeError(
        f"array is {type(array).__module__}.{type(array).__qualname__}, which cannot be made from a torch tensor: "
        "call collshim.arrays.register_kind(its type, a function from a torch tensor to it)"
    )
