"""``tf.linalg``. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

from typing import Any

import torch

from collshim.tensorflow.arithmetic import l2_normalize, matmul, pair, tensor
from collshim.tensorflow.clipping import global_norm
from collshim.tensorflow.creation import eye
from collshim.tensorflow.errors import checked, invalid_argument
from collshim.tensorflow.reductions import norm
from collshim.tensorflow.tensor import Tensor, adopt

__all__ = [
    "diag",
    "diag_part",
    "einsum",
    "eye",
    "global_norm",
    "l2_normalize",
    "matmul",
    "norm",
    "set_diag",
    "tensordot",
]


@checked
def diag(
    diagonal: Any,
    name: str = "diag",
    k: int = 0,
    num_rows: int = -1,
    num_cols: int = -1,
    padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Return a matrix for each row, with the row on the ``k``-th diagonal above the main one, and ``padding_value``.

    By default the matrix is as small as possible. ``align`` has no effect on a single diagonal.

    Raises:
        InvalidArgumentError: the matrix is too small.
    """
    numbers = tensor(diagonal)
    rows, columns = numbers.shape[-1] + max(-k, 0), numbers.shape[-1] + max(k, 0)
    shape = [rows if num_rows < 0 else num_rows, columns if num_cols < 0 else num_cols]
    whole = torch.full([*numbers.shape[:-1], *shape], padding_value, dtype=numbers.dtype)
    return adopt(whole.diagonal_scatter(numbers, k, -2, -1))


@checked
def diag_part(
    input: Any, name: str = "diag_part", k: int = 0, padding_value: Any = 0, align: str = "RIGHT_LEFT"
) -> Tensor:
    """Return a copy of each matrix's ``k``-th diagonal above the main one; the arguments after ``k`` have no effect."""
    return adopt(tensor(input).diagonal(k, -2, -1).clone())


@checked
def set_diag(input: Any, diagonal: Any, name: str = "set_diag", k: int = 0, align: str = "RIGHT_LEFT") -> Tensor:
    """Return the matrices with ``diagonal`` on the ``k``-th diagonal above the main one; ``align`` has no effect.

    Raises:
        InvalidArgumentError: ``diagonal`` does not have the right shape.
    """
    matrices = tensor(input)
    numbers = tensor(diagonal, None if hasattr(diagonal, "dtype") else matrices.dtype)
    wanted = list(matrices.diagonal(k, -2, -1).shape)
    if list(numbers.shape) != wanted:
        raise invalid_argument(f"set_diag: diagonal has shape {list(numbers.shape)}, should have {wanted}")
    return adopt(matrices.diagonal_scatter(numbers, k, -2, -1))


@checked
def einsum(equation: str, *inputs: Any, **kwargs: Any) -> Tensor:
    """Return the sum of products that the equation describes, in Einstein's notation."""
    found = [tensor(one) for one in inputs]
    for one in found[1:]:
        pair(found[0], one, "Einsum")
    return adopt(torch.einsum(equation, *found).to(found[0].dtype))


@checked
def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> Tensor:
    """Return the tensor product, summed over ``axes``: a number of axes, or a list of axes for each operand."""
    first, second = pair(a, b, "MatMul")
    given = axes.tolist() if hasattr(axes, "tolist") else axes
    wanted: Any = given if isinstance(given, int) else [[one] if isinstance(one, int) else list(one) for one in given]
    return adopt(torch.tensordot(first, second, wanted))
