"""``tf.ragged``: rows of different lengths. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

from typing import Any

from collshim.adapting.absent import saying
from collshim.errors import ArgumentValueError
from collshim.tensorflow.composites import RaggedTensor
from collshim.tensorflow.constants import constant as tensor_of

__all__ = ["constant"]


def constant(pylist: Any, dtype: Any = None, name: str | None = None) -> RaggedTensor:
    """Return a ragged tensor with the numbers in a list of lists.

    Raises:
        ValueError: ``pylist`` is not a list of lists.
    """
    if not all(isinstance(row, list | tuple) for row in pylist):
        raise ArgumentValueError("all scalar values must have the same nesting depth, of two lists")
    values = tensor_of([number for row in pylist for number in row], dtype)
    return RaggedTensor(values, [len(row) for row in pylist])


__getattr__ = saying(__name__, "use torch.nested; tf.ragged.constant and tf.RaggedTensor have one ragged axis here")
