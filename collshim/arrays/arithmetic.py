"""Sums and their kin over the ranks' tensors, in rank order, exact for every dtype that they mean something for.

Used where all ranks' values lie in one process: by ranks that are threads, and for small calls between processes.
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
"""The largest denominator of a factor whose products with 64 bits can be had in 64 bits."""
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

REDUCE_OPS = tuple(_FOLDS)
"""The names of the reduce operations."""


@cache
def undefined_for(reduce_op: str, dtype: torch.dtype) -> str | None:
    """Why ``reduce_op`` means nothing for ``dtype``; None where it does mean something."""
    if reduce_op in ("band", "bor", "bxor") and (dtype.is_floating_point or dtype.is_complex):
        return "bits of integers or booleans only"
    if str(dtype) == "torch.float8_e8m0fnu":
        return "a sign and a zero, which exponents alone have not"
    if reduce_op in ("min", "max") and dtype.is_complex:
        return "an order, which complex numbers have not"
    if reduce_op in ("avg", "premul_sum") and dtype is torch.bool:
        return "numbers, which booleans are not"
    return None if dtype in REDUCIBLE else "arithmetic in torch"


@lru_cache(256)
def reducer(dtype: torch.dtype, reduce_op: str, factor: float | None = None) -> Reducer:
    """A function from the ranks' parts, and a place or None for fresh memory, to their reduction, taken in order.

    The place may be one of the parts. Integers wrap around as they do in C; booleans: sum and max are "or", prod and
    min "and"; ``avg`` of integers is truncated towards zero as NCCL's; fp8 is accumulated in float32, complex32 in
    complex64, and rounded once. ``premul_sum``: see ``scaled``.
    """
    if dtype in WIDE:
        return partial(_widened, reducer(WIDE[dtype], reduce_op, factor), WIDE[dtype])
    if dtype in SIGNED:
        return partial(_reduced_unsigned, reduce_op, factor)
    if dtype is torch.bool:
        reduce_op = _OF_BOOLEANS.get(reduce_op, reduce_op)
    folded = partial(_folded, _FOLDS[reduce_op])
    if reduce_op == "avg":
        return partial(_averaged, folded, "trunc" if dtype in INTEGERS else None)
    return folded if factor is None else partial(_premultiplied, folded, factor)


def _folded(fold: Fold, parts: Sequence[Tensor], out: Tensor | None) -> Tensor:
    """Nothing is written to ``out`` before the parts that it may be one of have been read."""
    total, last = parts[0], parts[-1]
    if len(parts) == 1:
        return total.clone() if out is None else _copied(out, total)
    middle, spare = parts[1:-1], None
    if middle and out is not None and out.data_ptr() not in [part.data_ptr() for part in parts]:
        spare = out
    for part in middle:
        total = spare = fold(total, part, out=spare)
    return fold(total, last, out=spare if out is None else out)


def _averaged(folded: Reducer, rounding: str | None, parts: Sequence[Tensor], out: Tensor | None) -> Tensor:
    return folded(parts, out).div_(len(parts), rounding_mode=rounding)


def _premultiplied(folded: Reducer, factor: float, parts: Sequence[Tensor], out: Tensor | None) -> Tensor:
    return folded([scaled(part, factor) for part in parts], out)


def _copied(out: Tensor, part: Tensor) -> Tensor:
    """``out`` with the values of ``part``, which may lie there already."""
    return out if out.data_ptr() == part.data_ptr() and out.stride() == part.stride() else out.copy_(part)


def _widened(reduces: Reducer, wider: torch.dtype, parts: Sequence[Tensor], out: Tensor | None) -> Tensor:
    out = torch.empty_like(parts[0]) if out is None else out
    return out.copy_(reduces([part.to(wider) for part in parts], None))


def scaled(part: Tensor, factor: float | None) -> Tensor:
    """``part`` times ``factor`` in its own dtype; of integers each product is cut towards zero, and wraps around.

    A factor whose denominator, a power of two, is at most 2**31 (3, 0.5, -1.25) multiplies integers exactly. With any
    other (0.1) the product is that of float64: exact too, before it is cut, where it has at most 53 bits.
    """
    if factor is None:
        return part
    if part.is_floating_point() or part.is_complex():
        return (part * factor).to(part.dtype)
    return _times(part.to(torch.int64), factor).to(part.dtype)


def _times(part: Tensor, factor: float) -> Tensor:
    """int64 times a factor, modulo 2**64."""
    numerator, denominator = factor.as_integer_ratio()
    if denominator > _FINEST:
        return _wrapped(part.double() * factor)
    whole, rest = divmod(abs(numerator), denominator)
    product = part * _as_signed(whole)
    if rest:
        quotient = part.div(denominator, rounding_mode="trunc")
        over = (part - quotient * denominator) * rest
        product += quotient * rest + over.div(denominator, rounding_mode="trunc")
    return -product if numerator < 0 else product


def _wrapped(product: Tensor) -> Tensor:
    """float64 to int64 as C wraps integers around: the conversion itself does so on no processor for certain."""
    within = product.trunc().fmod(2.0**64)
    within -= (within >= 2.0**63) * 2.0**64
    within += (within < -(2.0**63)) * 2.0**64
    return within.to(torch.int64)


def _as_signed(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


def _reduced_unsigned(reduce_op: str, factor: float | None, parts: Sequence[Tensor], out: Tensor | None) -> Tensor:
    """torch computes little on uint16 to uint64; two's complement shares their bits for all but order and division."""
    out = torch.empty_like(parts[0]) if out is None else out
    signed, fold = SIGNED[out.dtype], _FOLDS[reduce_op]
    bits = [part.view(signed) for part in parts]
    if reduce_op in ("min", "max"):
        shifted = [part ^ _LOWEST[signed] for part in bits]
        out.view(signed).copy_(_folded(fold, shifted, None) ^ _LOWEST[signed])
    elif reduce_op in ("avg", "premul_sum"):
        _divide_unsigned(out, parts, reduce_op, factor)
    else:
        _folded(fold, bits, out.view(signed))
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
    """What ``scaled`` says, of one number that is not negative."""
    numerator, denominator = factor.as_integer_ratio()
    if denominator > _FINEST:
        return int(value * factor)
    product = value * abs(numerator) // denominator
    return -product if numerator < 0 else product
