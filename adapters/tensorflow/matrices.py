"""Functions of matrices, and of stacks of them, for ``tf.linalg``. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from collshim.errors import ArgumentValueError
from collshim.tensorflow.arithmetic import axes_of, matmul, pair, tensor
from collshim.tensorflow.errors import checked, invalid_argument
from collshim.tensorflow.operands import fractions
from collshim.tensorflow.tensor import Tensor, adopt, plain


class LogMatrixDeterminant(NamedTuple):
    """The sign of determinants, and the logarithm of their absolute value."""

    sign: Tensor
    log_abs_determinant: Tensor


@checked
def matvec(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return the product of matrices and vectors; the arguments after ``adjoint_a`` have no effect.

    Raises:
        ValueError: ``a`` should be both transposed and adjoint.
        InvalidArgumentError: shapes or dtypes do not fit.
    """
    columns = tensor(b).unsqueeze(-1)
    return adopt(plain(matmul(a, columns, transpose_a, adjoint_a=adjoint_a)).squeeze(-1))


@checked
def adjoint(matrix: Any, name: str | None = None) -> Tensor:
    """Return the matrices transposed and conjugated."""
    return adopt(tensor(matrix).mH.resolve_conj().clone())


@checked
def band_part(input: Any, num_lower: Any, num_upper: Any, name: str | None = None) -> Tensor:
    """Return the matrices with zeros outside the diagonal band; a negative number keeps that whole triangle."""
    matrices = tensor(input)
    rows, columns = matrices.shape[-2:]
    distance = torch.arange(rows).unsqueeze(1) - torch.arange(columns)
    lower, upper = int(num_lower), int(num_upper)
    inside = (lower < 0) | (distance <= lower)
    inside &= (upper < 0) | (-distance <= upper)
    return adopt(torch.where(inside, matrices, torch.zeros_like(matrices)))


@checked
def cholesky(input: Any, name: str | None = None) -> Tensor:
    """Return the lower triangular factor of positive definite matrices; NaN for other matrices."""
    return adopt(_factor(_floats(input)))


@checked
def cholesky_solve(chol: Any, rhs: Any, name: str | None = None) -> Tensor:
    """Return the solutions of ``chol chol^H x = rhs``."""
    factor, right = pair(chol, rhs, "CholeskySolve")
    return adopt(torch.cholesky_solve(right, fractions(factor)))


@checked
def cross(a: Any, b: Any, name: str | None = None) -> Tensor:
    """Return the cross products of vectors of three numbers, along the last axis."""
    return adopt(torch.linalg.cross(*pair(a, b, "Cross")))


@checked
def det(input: Any, name: str | None = None) -> Tensor:
    """Return the determinants."""
    return adopt(torch.linalg.det(_floats(input)))


@checked
def slogdet(input: Any, name: str | None = None) -> LogMatrixDeterminant:
    """Return the sign of the determinants, and the logarithm of their absolute value."""
    sign, logarithm = torch.linalg.slogdet(_floats(input))
    return LogMatrixDeterminant(adopt(sign), adopt(logarithm))


@checked
def logdet(matrix: Any, name: str | None = None) -> Tensor:
    """Return the logarithm of the determinants of positive definite matrices."""
    diagonal = _factor(_floats(matrix)).diagonal(0, -2, -1).real
    return adopt(2 * diagonal.log().sum(-1))


@checked
def eigh(tensor: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Return the eigenvalues, in ascending order, and the eigenvectors of Hermitian matrices."""
    values, vectors = torch.linalg.eigh(_floats(tensor))
    return adopt(values.to(vectors.dtype)), adopt(vectors)


@checked
def eigvalsh(tensor: Any, name: str | None = None) -> Tensor:
    """Return the eigenvalues of Hermitian matrices, in ascending order."""
    return adopt(torch.linalg.eigvalsh(_floats(tensor)))


@checked
def inv(input: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """Return the inverse matrices, or with ``adjoint`` those of the adjoint matrices.

    Raises:
        InvalidArgumentError: a matrix has no inverse.
    """
    matrices = _floats(input)
    return adopt(torch.linalg.inv(matrices.mH if adjoint else matrices))


@checked
def solve(matrix: Any, rhs: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """Return the solutions of ``matrix x = rhs``, or with ``adjoint`` those of the adjoint matrices.

    Raises:
        InvalidArgumentError: a matrix has no inverse, or shapes do not fit.
    """
    left, right = pair(matrix, rhs, "MatrixSolve")
    if right.dim() < 2:
        raise invalid_argument(f"MatrixSolve: rhs has {right.dim()} axes, should have at least 2")
    left = fractions(left)
    return adopt(torch.linalg.solve(left.mH if adjoint else left, right))


@checked
def triangular_solve(
    matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """Return the solutions of ``matrix x = rhs``, in which only one triangle of ``matrix`` is read."""
    left, right = pair(matrix, rhs, "MatrixTriangularSolve")
    found = left.tril() if lower else left.triu()
    return adopt(torch.linalg.solve_triangular(found.mH if adjoint else found, right, upper=lower == adjoint))


@checked
def svd(tensor: Any, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None) -> Any:
    """Return the singular values ``s``, in descending order, ``u`` and ``v``; only ``s`` without ``compute_uv``.

    The matrix is ``u diag(s) v^H``.
    """
    matrices = _floats(tensor)
    if not compute_uv:
        return adopt(torch.linalg.svdvals(matrices))
    left, values, right = torch.linalg.svd(matrices, full_matrices=full_matrices)
    return adopt(values), adopt(left), adopt(right.mH.resolve_conj())


@checked
def pinv(a: Any, rcond: Any = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """Return the pseudo-inverses; singular values below ``rcond`` times the largest one count as 0."""
    matrices = _floats(a)
    precision = 10 * max(matrices.shape[-2:]) * torch.finfo(matrices.dtype).eps
    return adopt(torch.linalg.pinv(matrices, rtol=precision if rcond is None else rcond))


@checked
def matrix_rank(a: Any, tol: Any = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """Return the number of singular values above ``tol``, int32."""
    return adopt(torch.linalg.matrix_rank(_floats(a), atol=tol).int())


@checked
def normalize(tensor: Any, ord: Any = "euclidean", axis: Any = None, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Return the tensor divided by its norm along ``axis``, and the norm.

    Raises:
        ValueError: ``ord`` is neither "euclidean" nor a positive number.
    """
    values = _floats(tensor)
    power = 2.0 if ord == "euclidean" else ord
    if isinstance(power, str) or not power > 0:
        raise ArgumentValueError(f"'ord' must be a supported vector norm, got {ord}")
    length = torch.linalg.vector_norm(values, float(power), axes_of(values, axis), keepdim=True)
    return adopt(values / length), adopt(length)


def _factor(matrices: torch.Tensor) -> torch.Tensor:
    factor, failed = torch.linalg.cholesky_ex(matrices)
    return torch.where(failed[..., None, None] > 0, torch.full_like(factor, torch.nan).tril(), factor)


def _floats(value: Any) -> torch.Tensor:
    return fractions(tensor(value))
