"""Reductions over the ranks' tensors, in rank order, exact for every dtype on which they are defined.

Used if one process has all ranks' values: by ranks that are threads, and for small calls between processes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from typing import TypeAlias

import torch
from torch import Tensor

from collshim.arrays.dtypes import INTEGERS, REDUCIBLE, SIGNED, WIDE

ReduceOp: TypeAlias = "str | tuple[str, float]"
"""The name of a reduce operation, or ``("premul_sum", factor)``."""

Fold = Callable[..., Tensor]
Reducer = Callable[[Sequence[Tensor], Tensor | None], Tensor]

_LOWEST = {torch.int16: -(2**15), torch.int32: -(2**31), torch.int64: -(2**63)}
_FINEST = 2**31
"""The largest denominator of a factor whose products with 64-bit integers can be computed in 64 bits."""
_FOLDS: dict[str, Fold] = {
    "sum": torch.add,
    "avg": torch.add,
    "prod": torch.mul,
    "min": torch.minimum,
    "max": torch.maximum,
    "band": torch.bitwise_and,
    "bor": torch.bitwise_or,
    "bxor": torch.bitwise_xor,
    "premul_sum": torch.add,
}
_OF_BOOLEANS = {"sum": "bor", "prod": "band", "min": "band", "max": "bor"}

BITWISE = ("band", "bor", "bxor")
REDUCE_OPS = tuple(_FOLDS)
"""The names of the reduce operations."""


@cache
def undefined_for(reduce_op: str, dtype: torch.dtype) -> str | None:
    """Return what ``dtype`` lacks for ``reduce_op``; None if the operation is defined for it."""
    if reduce_op in BITWISE and (dtype.is_floating_point or dtype.is_complex):
        return "bits of integers or booleans only"
    if str(dtype) == "torch.float8_e8m0fnu":
        return "a sign and a zero, which exponents alone do not have"
    if reduce_op in ("min", "max") and dtype.is_complex:
        return "an order, which complex numbers do not have"
    if reduce_op in ("avg", "premul_sum") and dtype is torch.bool:
        return "numbers, which booleans are not"
    return None if dtype in REDUCIBLE else "arithmetic in torch"


def of_booleans(reduce_op: str) -> str:
    """Return the bitwise operation by which booleans are reduced."""
    return _OF_BOOLEANS.get(reduce_op, reduce_op)


@lru_cache(256)
def reducer(dtype: torch.dtype, reduce_op: str) -> Reducer:
    """Return a function that reduces the ranks' parts in order, into an output, or into new memory if that is None.

    The output may be one of the parts. Integers wrap around as in C. For booleans, sum and max are "or", prod and min
    "and". ``avg`` of integers is truncated towards zero, as in NCCL. fp8 is accumulated in float32, complex32 in
    complex64, and rounded once.
    """
    if dtype in WIDE:
        return partial(_reduce_wider, reducer(WIDE[dtype], reduce_op), WIDE[dtype])
    if dtype in SIGNED:
        return partial(_reduce_unsigned, reduce_op, None)
    if dtype is torch.bool:
        reduce_op = of_booleans(reduce_op)
    fold = partial(_fold, _FOLDS[reduce_op])
    if reduce_op == "avg":
        return partial(_average, fold, "trunc" if dtype in INTEGERS else None)
    return fold


def scaling_reducer(dtype: torch.dtype, factor: float) -> Reducer:
    """Return a ``reducer`` for ``premul_sum``, whose terms are multiplied by the factor first: see ``scaled``.

    It is made anew for each factor: 0.0 and -0.0 are equal as keys of a cache.
    """
    if dtype in WIDE:
        return partial(_reduce_wider, scaling_reducer(WIDE[dtype], factor), WIDE[dtype])
    if dtype in SIGNED:
        return partial(_reduce_unsigned, "premul_sum", factor)
    return partial(_premultiply, partial(_fold, _FOLDS["premul_sum"]), factor)


def _fold(fold: Fold, parts: Sequence[Tensor], out: Tensor | None) -> Tensor:
    """Fold the parts; ``out``, which may be one of them, is written only after all parts were read."""
    total, last = parts[0], parts[-1]
    if len(parts) == 1:
        return total.clone() if out is None else _copy(out, total)
    middle, spare = parts[1:-1], None
    if middle and out is not None and out.data_ptr() not in [part.data_ptr() for part in parts]:
        spare = out
    for part in middle:
        total = spare = fold(total, part, out=spare)
    return fold(total, last, out=spare if out is None else out)


def _average(fold: Reducer, rounding: str | None, parts: Sequence[Tensor], out: Tensor | None) -> Tensor:
    return fold(parts, out).div_(len(parts), rounding_mode=rounding)


def _premultiply(fold: Reducer, factor: float, parts: Sequence[Tensor], out: Tensor | None) -> Tensor:
    return fold([scaled(part, factor) for part in parts], out)


def _copy(out: Tensor, part: Tensor) -> Tensor:
    """Return ``out`` with the values of ``part``, which may be the same memory."""
    return out if out.data_ptr() == part.data_ptr() and out.stride() == part.stride() else out.copy_(part)


def _reduce_wider(reduces: Reducer, wider: torch.dtype, parts: Sequence[Tensor], out: Tensor | None) -> Tensor:
    out = torch.empty_like(parts[0]) if out is None else out
    return out.copy_(reduces([part.to(wider) for part in parts], None))


def scaled(part: Tensor, factor: float | None) -> Tensor:
    """Return ``part`` times ``factor`` in its own dtype; integer products are truncated towards zero, and wrap around.

    A factor whose denominator, a power of two, is at most 2**31 (3, 0.5, -1.25) multiplies integers exactly. With any
    other factor (0.1) the product is computed in float64, so it is exact before truncation if it has at most 53 bits.
    """
    if factor is None:
        return part
    if part.is_floating_point() or part.is_complex():
        return (part * factor).to(part.dtype)
    return _times(part.to(torch.int64), factor).to(part.dtype)


def _times(part: Tensor, factor: float) -> Tensor:
    """Multiply int64 by a factor, modulo 2**64."""
    numerator, denominator = factor.as_integer_ratio()
    if denominator > _FINEST:
        return _wrap(part.double() * factor)
    whole, rest = divmod(abs(numerator), denominator)
    product = part * _as_signed(whole)
    if rest:
        quotient = part.div(denominator, rounding_mode="trunc")
        over = (part - quotient * denominator) * rest
        product += quotient * rest + over.div(denominator, rounding_mode="trunc")
    return -product if numerator < 0 else product


def _wrap(product: Tensor) -> Tensor:
    """Convert float64 to int64 with wraparound as in C; the processor's own conversion does not guarantee that."""
    within = product.trunc().fmod(2.0**64)
    within -= (within >= 2.0**63) * 2.0**64
    within += (within < -(2.0**63)) * 2.0**64
    return within.to(torch.int64)


def _as_signed(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


def _reduce_unsigned(reduce_op: str, factor: float | None, parts: Sequence[Tensor], out: Tensor | None) -> Tensor:
    """Reduce uint16 to uint64, for which torch lacks most arithmetic.

    Two's complement gives signed integers the same bits, for all operations but order and division.
    """
    out = torch.empty_like(parts[0]) if out is None else out
    signed, fold = SIGNED[out.dtype], _FOLDS[reduce_op]
    bits = [part.view(signed) for part in parts]
    if reduce_op in ("min", "max"):
        shifted = [part ^ _LOWEST[signed] for part in bits]
        out.view(signed).copy_(_fold(fold, shifted, None) ^ _LOWEST[signed])
    elif reduce_op in ("avg", "premul_sum"):
        _divide_unsigned(out, parts, reduce_op, factor)
    else:
        _fold(fold, bits, out.view(signed))
    return out


def _divide_unsigned(out: Tensor, parts: Sequence[Tensor], reduce_op: str, factor: float | None) -> None:
    exact = [[int(value) for value in part.reshape(-1).tolist()] for part in parts]
    columns = zip(*exact, strict=True)
    bits = out.element_size() * 8
    if reduce_op == "avg":
        values = [sum(column) % 2**bits // len(parts) for column in columns]
    else:
        values = [
            sum(_product(value, 1.0 if factor is None else factor) for value in column) % 2**bits for column in columns
        ]
    out.copy_(torch.tensor(values, dtype=out.dtype, device="cpu").view(out.shape))


def _product(value: int, factor: float) -> int:
    """Do the same as ``scaled``, for one number that is not negative."""
    numerator, denominator = factor.as_integer_ratio()
    if denominator > _FINEST:
        return int(value * factor)
    product = value * abs(numerator) // denominator
    return -product if numerator < 0 else product
