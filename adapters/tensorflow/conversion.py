"""``tf.convert_to_tensor``: whatever stands for a tensor as one, and gradients pass.

Source: TensorFlow 2.21, run eagerly on CPU.
"""

from __future__ import annotations

from typing import Any

import torch

from collshim.arrays import as_torch, is_array
from collshim.errors import ArgumentValueError
from collshim.tensorflow.constants import constant, torch_dtype
from collshim.tensorflow.operands import holds_a_tensor
from collshim.tensorflow.tensor import Tensor, adopt, plain


def convert_to_tensor(
    value: Any, dtype: Any = None, dtype_hint: Any = None, name: str | None = None, preferred_dtype: Any = None
) -> Tensor:
    """``value`` as a tensor: one that it is already stays the same memory, lists of tensors are stacked.

    Gradients pass. Numbers get ``tf.constant``'s dtype.

    Args:
        value: an array, a number, a variable, or nested lists of these.
        dtype: what the result must be of: numbers become it, an array must have it. None for ``value``'s own.
        dtype_hint: for numbers that it can hold.
        name: not used, as ``preferred_dtype`` is not.

    Raises:
        ValueError: an array of another dtype than ``dtype``, or what is no tensor.
        TypeError: numbers that ``dtype`` does not hold.
    """
    if hasattr(value, "_as_tensor"):
        value = value._as_tensor()
    if is_array(value):
        return _checked(adopt(as_torch(plain(value))), value, dtype)
    if isinstance(value, list | tuple) and holds_a_tensor(value):
        parts = [convert_to_tensor(part, dtype) if holds_a_tensor(part) else part for part in value]
        first = next(part for part in parts if isinstance(part, torch.Tensor))
        whole = [plain(part if isinstance(part, torch.Tensor) else constant(part, first.dtype)) for part in parts]
        return adopt(torch.stack(whole))
    return constant(value, _hinted(value, dtype, dtype_hint))


def _checked(tensor: Tensor, value: Any, dtype: Any) -> Tensor:
    if dtype is None or torch_dtype(dtype) is tensor.dtype:
        return tensor
    if isinstance(value, torch.Tensor):
        wanted = str(torch_dtype(dtype)).removeprefix("torch.")
        have = str(tensor.dtype).removeprefix("torch.")
        raise ArgumentValueError(f"Tensor conversion requested dtype {wanted} for Tensor with dtype {have}: {value!r}")
    return adopt(plain(tensor).to(torch_dtype(dtype)))


def _hinted(value: Any, dtype: Any, hint: Any) -> Any:
    if dtype is not None or hint is None:
        return dtype
    try:
        constant(value, hint)
    except (TypeError, ValueError):
        return None
    return hint
