"""Sums and their kin over the ranks' tensors, in rank order, exact for every dtype that they mean something for.

Used where all ranks' values lie in one process: by ranks that are threads, and for small calls between processes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

Fold = Callable[[Tensor, Tensor], Any]

_SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}
_LOWEST = {torch.int16: -(2**15), torch.int32: -(2**31), torch.int64: -(2**63)}
_EIGHT_BITS = tuple(
    getattr(torch, name)
    for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
    if hasattr(torch, name)
)
_FOLDS: dict[str, Fold] = {
    "sum": Tensor.add_,
    "avg": Tensor.add_,
    "premul_sum": Tensor.add_,
    "prod": Tensor.mul_,
    "min": lambda into, part: torch.minimum(into, part, out=into),
    "max": lambda into, part: torch.maximum(into, part, out=into),
    "band": Tensor.bitwise_and_,
    "bor": Tensor.bitwise_or_,
    "bxor": Tensor.bitwise_xor_,
}
_OF_BOOLEANS = {"sum": "bor", "prod": "band", "min": "band", "max": "bor"}


def meaning(reduce_op: str, dtype: torch.dtype) -> str | None:
    """Why ``reduce_op`` means nothing for ``dtype``; None where it does mean something."""
    if reduce_op in ("band", "bor", "bxor") and (dtype.is_floating_point or dtype.is_complex):
        return "bits of integers or booleans only"
    if str(dtype) == "torch.float8_e8m0fnu":
        return "a sign and a zero, which exponents alone have not"
    if reduce_op in ("min", "max") and dtype.is_complex:
        return "an order, which complex numbers have not"
    if reduce_op in ("avg", "premul_sum") and dtype is torch.bool:
        return "numbers, which booleans are not"
    return None


def reduce_into(out: Tensor, parts: Sequence[Tensor], reduce_op: str, factor: float | None = None) -> None:
    """Write the reduction of ``parts``, taken in order, into ``out``, which may be one of them.

    Integers wrap around as they do in C; booleans: sum and max are "or", prod and min "and"; ``avg`` of integers is
    truncated towards zero as NCCL's; fp8 is accumulated in float32 and rounded once.
    """
    if parts[0].dtype in _EIGHT_BITS:
        wide = torch.empty_like(out, dtype=torch.float32)
        reduce_into(wide, [part.float() for part in parts], reduce_op, factor)
        out.copy_(wide)
    elif parts[0].dtype in _SIGNED:
        _reduce_unsigned(out, parts, reduce_op, factor)
    else:
        _fold(out, parts, _OF_BOOLEANS.get(reduce_op, reduce_op) if out.dtype is torch.bool else reduce_op, factor)


def _fold(out: Tensor, parts: Sequence[Tensor], reduce_op: str, factor: float | None) -> None:
    fold = _FOLDS[reduce_op]
    into = out if out.data_ptr() not in {part.data_ptr() for part in parts[1:]} else torch.empty_like(out)
    _first(into, parts[0], reduce_op, factor)
    for part in parts[1:]:
        fold(into, scaled(part, factor) if reduce_op == "premul_sum" else part)
    if reduce_op == "avg":
        into.div_(len(parts), rounding_mode=None if into.is_floating_point() or into.is_complex() else "trunc")
    if into is not out:
        out.copy_(into)


def _first(into: Tensor, part: Tensor, reduce_op: str, factor: float | None) -> None:
    if reduce_op == "premul_sum":
        into.copy_(scaled(part, factor))
    elif into.data_ptr() != part.data_ptr() or into.numel() == 0:
        into.copy_(part)


def scaled(part: Tensor, factor: float | None) -> Tensor:
    """``part`` times ``factor`` in its own dtype; whole factors of integers are exact."""
    return (part * _factor(part.dtype, factor)).to(part.dtype)


def _factor(dtype: torch.dtype, factor: float | None) -> float:
    if factor is None:
        return 1
    whole = not dtype.is_floating_point and not dtype.is_complex and float(factor).is_integer()
    return int(factor) if whole else factor


def _reduce_unsigned(out: Tensor, parts: Sequence[Tensor], reduce_op: str, factor: float | None) -> None:
    """torch computes little on uint16 to uint64; two's complement shares their bits for all but order and division."""
    signed = _SIGNED[out.dtype]
    seen = [part.view(signed) for part in parts]
    if reduce_op in ("min", "max"):
        shifted = [part ^ _LOWEST[signed] for part in seen]
        _fold(shifted[0], shifted, reduce_op, factor)
        out.view(signed).copy_(shifted[0] ^ _LOWEST[signed])
    elif reduce_op in ("avg", "premul_sum"):
        _divide_unsigned(out, parts, reduce_op, factor)
    else:
        _fold(out.view(signed), seen, reduce_op, factor)


def _divide_unsigned(out: Tensor, parts: Sequence[Tensor], reduce_op: str, factor: float | None) -> None:
    exact = [[int(value) for value in part.reshape(-1).tolist()] for part in parts]
    columns = zip(*exact, strict=True)
    scale = _factor(out.dtype, factor)
    bits = out.element_size() * 8
    if reduce_op == "avg":
        values = [sum(column) % 2**bits // len(parts) for column in columns]
    else:
        values = [sum(int(value * scale) for value in column) % 2**bits for column in columns]
    out.copy_(torch.tensor(values, dtype=out.dtype, device="cpu").view(out.shape))
