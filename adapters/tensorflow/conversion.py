"""``tf.convert_to_tensor``: conversion of values to tensors; gradients pass.

Source: TensorFlow 2.21, run eagerly on CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from collshim.arrays import as_torch, is_array
from collshim.errors import ArgumentValueError
from collshim.tensorflow.constants import constant, is_of_strings, torch_dtype
from collshim.tensorflow.data_types import STRING
from collshim.tensorflow.errors import checked
from collshim.tensorflow.operands import holds_a_tensor
from collshim.tensorflow.string_tensor import StringTensor, holds_text
from collshim.tensorflow.tensor import Tensor, adopt, plain

_MAY_HOLD_TEXT = (str, bytes, list, tuple, np.ndarray, np.str_, np.bytes_, StringTensor)


def convert_to_tensor(
    value: Any, dtype: Any = None, dtype_hint: Any = None, name: str | None = None, preferred_dtype: Any = None
) -> Tensor:
    """Convert ``value`` to a tensor: arrays keep their memory, lists of tensors are stacked, slices become dense.

    Gradients pass. Numbers have the dtype of ``tf.constant``. An object may convert itself by ``__tf_tensor__``.

    Args:
        value: an array, a number, a variable, ``IndexedSlices``, or nested lists of the first three.
        dtype: the result's dtype: numbers are converted to it, and an array must have it. None for ``value``'s own.
        dtype_hint: a dtype for numbers, if it can hold them.
        name: not used, like ``preferred_dtype``.

    Raises:
        ValueError: an array's dtype is not ``dtype``; ``value`` cannot be converted, or is distributed.
        InvalidArgumentError: the shapes of the tensors in a list differ.
        TypeError: ``dtype`` cannot hold the numbers.
    """
    if type(value) in _MAY_HOLD_TEXT and (is_of_strings(dtype) or (dtype is None and holds_text(value))):
        return constant(value, STRING)
    if hasattr(value, "_as_tensor"):
        value = value._as_tensor()
    if is_array(value):
        return _require_dtype(adopt(as_torch(plain(value))), value, dtype)
    if hasattr(value, "__tf_tensor__"):
        return convert_to_tensor(value.__tf_tensor__(None if dtype is None else torch_dtype(dtype), name))
    if isinstance(value, list | tuple) and holds_a_tensor(value):
        whole = _stacked(value)
        return adopt(whole if dtype is None else whole.to(torch_dtype(dtype)))
    return constant(value, _hinted_dtype(value, dtype, dtype_hint))


@checked
def _stacked(value: Sequence[Any]) -> torch.Tensor:
    parts = [convert_to_tensor(part) if holds_a_tensor(part) else part for part in value]
    first = next(part for part in parts if isinstance(part, torch.Tensor))
    return torch.stack(
        [plain(part if isinstance(part, torch.Tensor) else constant(part, first.dtype)) for part in parts]
    )


def _require_dtype(tensor: Tensor, value: Any, dtype: Any) -> Tensor:
    if dtype is None or torch_dtype(dtype) is tensor.dtype:
        return tensor
    if isinstance(value, torch.Tensor):
        wanted = str(torch_dtype(dtype)).removeprefix("torch.")
        have = str(tensor.dtype).removeprefix("torch.")
        raise ArgumentValueError(f"Tensor conversion requested dtype {wanted} for Tensor with dtype {have}: {value!r}")
    return adopt(plain(tensor).to(torch_dtype(dtype)))


def _hinted_dtype(value: Any, dtype: Any, hint: Any) -> Any:
    if dtype is not None or hint is None:
        return dtype
    try:
        constant(value, hint)
    except (TypeError, ValueError):
        return None
    return hint
