"""``tf.constant``: there is no TensorFlow here, so what it makes is a torch tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from collshim.arrays import as_torch, is_array
from collshim.errors import ArgumentTypeError, ArgumentValueError

_INT32 = torch.iinfo(torch.int32)


def constant(value: Any, dtype: Any = None, shape: Sequence[int] | None = None, name: str = "Const") -> Tensor:
    """A new torch tensor on the CPU holding ``value``: int32 for Python ints, float32 for floats, as in TensorFlow.

    Args:
        value: a number, nested lists of numbers, or an array, which keeps its dtype and is copied.
        dtype: a ``torch.dtype``, a NumPy dtype or the name of one; None for the above.
        shape: the result's shape; a single value fills it.
        name: not used.

    Raises:
        ArgumentValueError: ``value`` holds something else than numbers, or does not fill ``shape``.
    """
    tensor = as_torch(value).detach().clone() if is_array(value) else _from_python(value)
    wanted = tensor.dtype if dtype is None else _torch_dtype(dtype)
    return _shaped(tensor.to(wanted), shape)


def _from_python(value: Any) -> Tensor:
    try:
        array = np.array(value)
    except ValueError as error:
        raise ArgumentValueError(f"Can't convert non-rectangular Python sequence to Tensor: {error}") from error
    if array.dtype.kind not in "biufc":
        raise ArgumentValueError(
            f"Attempt to convert a value ({value!r}) with an unsupported type ({type(value)}) to a Tensor."
        )
    return torch.from_numpy(array).to(_default_dtype(array))


def _default_dtype(array: np.ndarray[Any, Any]) -> torch.dtype:
    if array.dtype.kind == "b":
        return torch.bool
    if array.dtype.kind in "fc":
        return torch.float32 if array.dtype.kind == "f" else torch.complex128
    fits = array.size == 0 or (array.min() >= _INT32.min and array.max() <= _INT32.max)
    return torch.int32 if fits and array.dtype.kind == "i" else torch.int64


def _torch_dtype(dtype: Any) -> torch.dtype:
    name = dtype if isinstance(dtype, str) else str(dtype).removeprefix("torch.")
    name = name if isinstance(getattr(torch, name, None), torch.dtype) else _numpy_name(dtype)
    found = getattr(torch, name, None)
    if not isinstance(found, torch.dtype):
        raise ArgumentTypeError(f"dtype is {dtype!r}, should be a torch dtype, a NumPy dtype or the name of one")
    return found


def _numpy_name(dtype: Any) -> str:
    try:
        return str(np.dtype(dtype).name)
    except TypeError:
        return ""


def _shaped(tensor: Tensor, shape: Sequence[int] | None) -> Tensor:
    if shape is None:
        return tensor
    wanted = torch.Size(int(length) for length in shape)
    if tensor.numel() == 1:
        return tensor.reshape(()).expand(wanted).clone()
    if tensor.numel() != wanted.numel():
        raise ArgumentValueError(
            f"value has {tensor.numel()} elements, should have {wanted.numel()} for shape {wanted}"
        )
    return tensor.reshape(wanted)
