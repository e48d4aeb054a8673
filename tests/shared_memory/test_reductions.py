"""The reductions of the compiled core: each has the bits that the engine's own reducers give."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from collshim.arrays.arithmetic import BITWISE, REDUCE_OPS, reducer
from collshim.arrays.dtypes import REDUCIBLE
from collshim.transports.shared_memory.layout import ARRIVED, DONE, NUMBERS, OPERATIONS, REDUCED, reduction
from tests.shared_memory.rings import DATA_ROOM, Group, missing
from tests.shared_memory.test_finish_far import Call, readable

COMPILED = ("compiled", "compiled")
HEADER = b"a reduction"
REALS = ("float32", "float64", "float16", "bfloat16")
CASES = [(op, name) for name in NUMBERS for op in OPERATIONS if not (op in BITWISE and name in REALS)]

if reason := missing(COMPILED):
    pytest.skip(reason, allow_module_level=True)


def numbers(rank: int, count: int, dtype: torch.dtype) -> Tensor:
    """Return numbers of any bits: NaNs, infinities and numbers close to zero are among them."""
    generator = torch.Generator().manual_seed(1000 * rank + count)
    return torch.randint(256, (count * dtype.itemsize,), dtype=torch.uint8, generator=generator).view(dtype)


def reduce(ranks: Group, tensors: Sequence[Tensor], number: int) -> Tensor:
    """Return rank 0's result of one call, which all ranks finish."""
    post, out = ranks.post_all(HEADER, tensors), torch.empty_like(tensors[0])
    for own in ranks.rings:
        headers = (HEADER,) * ranks.size
        assert own.finish(post, headers, REDUCED, number, 0, out.nbytes, out.data_ptr(), 0.0) == DONE
    return out


def unlike(found: Tensor, expected: Tensor) -> int:
    """Count the numbers with other bits, except for NaNs."""
    differ = found.view(torch.uint8).view(-1, found.itemsize) != expected.view(torch.uint8).view(-1, found.itemsize)
    if not found.is_floating_point():
        return int(differ.any(1).sum())
    return int((differ.any(1) & ~(found.isnan() & expected.isnan())).sum())


@pytest.mark.parametrize(("op", "name"), CASES)
@pytest.mark.parametrize("size", [2, 3, 5])
def test_result_has_the_reducers_bits(size: int, op: str, name: str) -> None:
    ranks, dtype = Group(COMPILED, size), getattr(torch, name)
    for count in (0, 1, 3, 7, 9, DATA_ROOM // dtype.itemsize):
        tensors = [numbers(rank, count, dtype) for rank in range(size)]
        found = reduce(ranks, tensors, reduction(op, name))
        assert unlike(found, reducer(dtype, op)(tensors, None)) == 0


@pytest.mark.parametrize(("op", "name"), CASES)
def test_larger_result_has_the_reducers_bits(op: str, name: str) -> None:
    ranks, dtype = readable(3), getattr(torch, name)
    tensors = [numbers(rank, 1501, dtype) for rank in range(3)]
    expected = reducer(dtype, op)(tensors, None)
    call = Call(ranks, REDUCED, tensors, tensors, reduction=reduction(op, name), in_shares=True)
    for rank in (0, 1, 2, 0, 1):
        call.finish(rank)
    assert [unlike(tensor, expected) for tensor in tensors] == [0, 0, 0]


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("length", [7, 64])
def test_every_number_of_16_bits_is_rounded_as_by_torch(name: str, length: int) -> None:
    ranks, dtype = Group(COMPILED, 2), getattr(torch, name)
    every = torch.arange(2**16, dtype=torch.int32).to(torch.uint16).view(dtype)
    for one, other in zip(every.split(length), every.roll(30_001).split(length), strict=True):
        found = reduce(ranks, [one.clone(), other.clone()], reduction("sum", name))
        assert unlike(found, one + other) == 0


def test_only_reductions_of_other_dtypes_and_scaled_sums_are_left_to_python() -> None:
    names = {str(dtype).partition(".")[2] for dtype in REDUCIBLE}
    assert {op for op in REDUCE_OPS if not reduction(op, "float32")} == {"premul_sum"}
    left = {name for name in names if not reduction("sum", name)}
    assert {name for name in left if not name.startswith(("float8", "complex"))} == {"bool"}


@pytest.mark.parametrize("number", [0, 255, ord("?"), 8 * 256 + ord("f")])
def test_unknown_reduction_is_left_to_the_caller(number: int) -> None:
    ranks = Group(COMPILED, 2)
    post, out = ranks.post_all(HEADER, [torch.ones(4)] * 2), torch.zeros(4)
    found = ranks.rings[0].finish(post, (HEADER,) * 2, REDUCED, number, 0, 16, out.data_ptr(), 0.0)
    assert (found, out.tolist()) == (ARRIVED, [0.0] * 4)
