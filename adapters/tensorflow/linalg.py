"""``tf.linalg``. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from collshim.tensorflow.arithmetic import l2_normalize, matmul, pair, tensor
from collshim.tensorflow.clipping import global_norm
from collshim.tensorflow.creation import eye
from collshim.tensorflow.errors import checked, invalid_argument
from collshim.tensorflow.matrices import (
    adjoint,
    band_part,
    cholesky,
    cholesky_solve,
    cross,
    det,
    eigh,
    eigvalsh,
    inv,
    logdet,
    matrix_rank,
    matvec,
    normalize,
    pinv,
    slogdet,
    solve,
    svd,
    triangular_solve,
)
from collshim.tensorflow.reductions import norm
from collshim.tensorflow.tensor import Tensor, adopt

__all__ = [
    "adjoint",
    "band_part",
    "cholesky",
    "cholesky_solve",
    "cross",
    "det",
    "diag",
    "diag_part",
    "eigh",
    "eigvalsh",
    "einsum",
    "eye",
    "global_norm",
    "inv",
    "l2_normalize",
    "logdet",
    "matmul",
    "matrix_rank",
    "matrix_transpose",
    "matvec",
    "norm",
    "normalize",
    "pinv",
    "qr",
    "set_diag",
    "slogdet",
    "solve",
    "svd",
    "tensor_diag",
    "tensor_diag_part",
    "tensordot",
    "trace",
    "triangular_solve",
]


class Qr(NamedTuple):
    """The orthonormal and the triangular factor of matrices."""

    q: Tensor
    r: Tensor


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
def tensor_diag(diagonal: Any, name: str | None = None) -> Tensor:
    """Return a tensor with twice as many axes: zeros, except where the second half of the places equals the first."""
    numbers = tensor(diagonal)
    return adopt(torch.diag(numbers.reshape(-1)).reshape([*numbers.shape, *numbers.shape]))


@checked
def tensor_diag_part(input: Any, name: str | None = None) -> Tensor:
    """Return the elements whose second half of the places equals the first.

    Raises:
        InvalidArgumentError: the second half of the axes has other lengths than the first, or there are no two halves.
    """
    whole = tensor(input)
    half = whole.dim() // 2
    if not half or list(whole.shape) != list(whole.shape[:half]) * 2:
        raise invalid_argument(f"the second half of the axes should be as long as the first; got {list(whole.shape)}")
    return adopt(whole.reshape(whole.shape[:half].numel(), -1).diagonal().reshape(whole.shape[:half]).clone())


@checked
def trace(x: Any, name: str | None = None) -> Tensor:
    """Return the sum of each matrix's diagonal."""
    return adopt(tensor(x).diagonal(0, -2, -1).sum(-1).to(tensor(x).dtype))


@checked
def matrix_transpose(a: Any, name: str = "matrix_transpose", conjugate: bool = False) -> Tensor:
    """Return the matrices with their last two axes exchanged; ``conjugate`` also conjugates complex numbers."""
    exchanged = tensor(a).transpose(-2, -1)
    return adopt((exchanged.conj() if conjugate else exchanged).clone())


@checked
def qr(input: Any, full_matrices: bool = False, name: str | None = None) -> Qr:
    """Return ``q`` and ``r`` with the product ``input``; ``full_matrices`` makes ``q`` square."""
    first, second = torch.linalg.qr(tensor(input), mode="complete" if full_matrices else "reduced")
    return Qr(adopt(first), adopt(second))


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
