"""Further functions of numbers and of complex numbers, for ``tf.math``. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from collshim.adapting.slopes import without_gradient
from collshim.errors import ArgumentTypeError
from collshim.tensorflow.arithmetic import axes_of, pair, tensor
from collshim.tensorflow.constants import torch_dtype
from collshim.tensorflow.errors import checked, invalid_argument
from collshim.tensorflow.operands import fractions, numbers
from collshim.tensorflow.tensor import Tensor, adopt, dtype_name


@checked
def complex(real: Any, imag: Any, name: str | None = None) -> Tensor:
    """Return complex numbers with these parts, which are float32 or float64.

    Raises:
        TypeError: the parts have a different dtype.
    """
    first, second = pair(real, imag, "Complex")
    if first.dtype not in (torch.float32, torch.float64):
        kinds = f"{dtype_name(first.dtype)} {dtype_name(second.dtype)}"
        raise ArgumentTypeError(f"The `real` and `imag` components have incorrect types: {kinds}.")
    return adopt(torch.complex(*torch.broadcast_tensors(first, second)))


@checked
def real(input: Any, name: str | None = None) -> Tensor:
    """Return the real parts."""
    value = tensor(input)
    return adopt(value.real.clone() if value.is_complex() else value)


@checked
def imag(input: Any, name: str | None = None) -> Tensor:
    """Return the imaginary parts; 0 for real numbers."""
    value = tensor(input)
    return adopt(value.imag.clone() if value.is_complex() else torch.zeros_like(value))


@checked
def angle(input: Any, name: str | None = None) -> Tensor:
    """Return the angles of complex numbers; 0 or pi for real ones."""
    return adopt(torch.angle(fractions(tensor(input))))


@checked
def conj(x: Any, name: str | None = None) -> Tensor:
    """Return the conjugates."""
    return adopt(tensor(x).conj().resolve_conj())


@checked
def digamma(x: Any, name: str | None = None) -> Tensor:
    """Return the derivatives of ``lgamma``."""
    return adopt(torch.digamma(fractions(tensor(x))))


@checked
def lgamma(x: Any, name: str | None = None) -> Tensor:
    """Return the logarithms of the gamma function's absolute values."""
    return adopt(torch.lgamma(fractions(tensor(x))))


@checked
def erfc(x: Any, name: str | None = None) -> Tensor:
    """Return ``1 - erf(x)``."""
    return adopt(torch.erfc(fractions(tensor(x))))


@checked
def erfinv(x: Any, name: str | None = None) -> Tensor:
    """Return the numbers whose ``erf`` is ``x``."""
    return adopt(torch.erfinv(fractions(tensor(x))))


@checked
def rint(x: Any, name: str | None = None) -> Tensor:
    """Return the nearest whole numbers, the even ones for halves."""
    return adopt(without_gradient(torch.round)(fractions(tensor(x))))


@checked
def log_sigmoid(x: Any, name: str | None = None) -> Tensor:
    """Return the logarithms of ``sigmoid``."""
    return adopt(functional.logsigmoid(fractions(tensor(x))))


@checked
def multiply_no_nan(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return the product, or 0 if ``y`` is 0, whatever ``x`` is."""
    first, second = pair(x, y, "MulNoNan")
    return adopt(torch.where(second == 0, torch.zeros_like(first), fractions(first)) * second)


@checked
def reciprocal_no_nan(x: Any, name: str | None = None) -> Tensor:
    """Return the inverse, or 0 for 0."""
    value = fractions(tensor(x))
    zero = value == 0
    return adopt(torch.where(zero, torch.zeros_like(value), 1 / torch.where(zero, torch.ones_like(value), value)))


@checked
def xlogy(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return ``x * log(y)``, or 0 if ``x`` is 0."""
    return adopt(torch.xlogy(*map(fractions, pair(x, y, "Xlogy"))))


@checked
def xlog1py(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return ``x * log(1 + y)``, or 0 if ``x`` is 0."""
    return adopt(torch.special.xlog1py(*map(fractions, pair(x, y, "Xlog1py"))))


@checked
def xdivy(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return ``x / y``, or 0 if ``x`` is 0."""
    first, second = map(fractions, pair(x, y, "Xdivy"))
    zero = first == 0
    return adopt(torch.where(zero, torch.zeros_like(first), first / torch.where(zero, torch.ones_like(second), second)))


@checked
def polyval(coeffs: Any, x: Any, name: str | None = None) -> Tensor:
    """Return the values of a polynomial at ``x``; the list ``coeffs`` begins with the highest power's coefficient."""
    value = tensor(x)
    total = torch.zeros_like(value)
    for coefficient in coeffs:
        total = total * value + tensor(coefficient, None if hasattr(coefficient, "dtype") else value.dtype)
    return adopt(total)


@checked
def reduce_euclidean_norm(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Return the root of the sum of squares over ``axis``, or over all axes."""
    value = numbers(tensor(input_tensor))
    exact = value if value.is_floating_point() or value.is_complex() else value.double()
    return adopt(torch.linalg.vector_norm(exact, 2, axes_of(value, axis), keepdims).to(value.dtype))


@checked
def is_non_decreasing(x: Any, name: str | None = None) -> Tensor:
    """Return whether no element is below the one before it, in row-major order."""
    flat = numbers(tensor(x)).reshape(-1)
    return adopt((flat[1:] >= flat[:-1]).all())


@checked
def is_strictly_increasing(x: Any, name: str | None = None) -> Tensor:
    """Return whether each element is above the one before it, in row-major order."""
    flat = numbers(tensor(x)).reshape(-1)
    return adopt((flat[1:] > flat[:-1]).all())


@checked
def zero_fraction(value: Any, name: str | None = None) -> Tensor:
    """Return the fraction of elements that are 0, float32."""
    return adopt((tensor(value) == 0).float().mean())


@checked
def in_top_k(targets: Any, predictions: Any, k: Any, name: str | None = None) -> Tensor:
    """Return for each row of ``predictions`` whether fewer than ``k`` numbers are above that of the row's target."""
    wanted, scores = tensor(targets).long(), tensor(predictions)
    of_target = scores.gather(1, wanted.unsqueeze(1))
    return adopt(((scores > of_target).sum(1) < int(k)) & torch.isfinite(of_target.squeeze(1)))


@checked
def confusion_matrix(
    labels: Any,
    predictions: Any,
    num_classes: Any = None,
    weights: Any = None,
    dtype: Any = torch.int32,
    name: str | None = None,
) -> Tensor:
    """Return the sum of weights, by default 1, of each label in the rows with each prediction in the columns.

    Raises:
        InvalidArgumentError: a class is negative, or not below ``num_classes``.
    """
    rows, columns = tensor(labels).reshape(-1).long(), tensor(predictions).reshape(-1).long()
    highest = max([int(one.max()) for one in (rows, columns) if len(one)], default=-1)
    size = highest + 1 if num_classes is None else int(num_classes)
    lowest = min([int(one.min()) for one in (rows, columns) if len(one)], default=0)
    if lowest < 0 or highest >= size:
        raise invalid_argument(f"confusion_matrix: classes are from {lowest} to {highest}, should be below {size}")
    kind = torch_dtype(dtype)
    shares = torch.ones(len(rows), dtype=kind) if weights is None else tensor(weights).reshape(-1).to(kind)
    return adopt(torch.zeros(size, size, dtype=kind).index_put((rows, columns), shares, accumulate=True))
