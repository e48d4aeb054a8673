"""``finish`` of the compiled core: each rank's result equals torch's, or nothing has changed."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from collshim.transports.shared_memory import layout
from collshim.transports.shared_memory.layout import (
    ABSENT,
    ALL_PARTS,
    ARRIVED,
    DONE,
    FAR,
    FROM_ROOT,
    INLINE,
    NOTHING,
    PART_OF_EACH,
    PART_OF_ROOT,
    REDUCED,
    REDUCED_PART,
    WAITING,
)
from tests.shared_memory.rings import FORMS, Group, missing, post

MOVEMENTS = ("nothing", "reduced", "reduced_part", "all_parts", "from_root", "part_of_root", "part_of_each")
DTYPES = {"f": torch.float32, "d": torch.float64, "i": torch.int32, "l": torch.int64}
COUNTS = (0, 1, 3, 7, 12)
"""Numbers in a part: none, and lengths that no vector of a processor has."""

HEADER = b"the same call"


@pytest.fixture(params=[name for name in FORMS if "compiled" in FORMS[name]])
def forms(request: pytest.FixtureRequest) -> Any:
    """Return the forms of rank 0 and of the other ranks, one of which is compiled."""
    chosen = FORMS[request.param]
    if reason := missing(chosen):
        pytest.skip(reason)
    return chosen


def given(rank: int, count: int, dtype: torch.dtype) -> Tensor:
    """Return a rank's numbers: sums of floats are rounded, and those of integers wrap around."""
    generator = torch.Generator().manual_seed(1000 * rank + count)
    if dtype.is_floating_point:
        numbers = torch.randn(count, dtype=dtype, generator=generator) * 10.0 ** torch.arange(count).sub(4).to(dtype)
        odd = torch.tensor([-0.0, torch.finfo(dtype).max, torch.finfo(dtype).tiny / 4], dtype=dtype)
        return torch.cat((odd, numbers))[:count]
    limits = torch.iinfo(dtype)
    return torch.randint(limits.min, limits.max, (count,), dtype=dtype, generator=generator)


def expected(what: int, tensors: list[Tensor], rank: int, root: int) -> Tensor | None:
    """Return the result of a rank, computed by torch in rank order."""
    size = len(tensors)
    parts = [tensor.view(size, -1)[rank] if tensor.numel() % size == 0 else tensor for tensor in tensors]
    if what == NOTHING:
        return None
    if what in (REDUCED, REDUCED_PART):
        return functools.reduce(torch.add, tensors if what == REDUCED else parts)
    if what in (FROM_ROOT, PART_OF_ROOT):
        return (tensors if what == FROM_ROOT else parts)[root]
    return torch.cat(tensors if what == ALL_PARTS else parts)


def same_bits(one: Tensor, other: Tensor) -> bool:
    return one.numpy().tobytes() == other.numpy().tobytes()


def finish(ranks: Group, rank: int, number: int, what: int, out: Tensor | None, part: int, **changes: Any) -> int:
    """Finish a call on one rank; ``changes`` may have the dtype's code, the root and the header."""
    code, root = changes.get("code", "f"), changes.get("root", 0)
    headers = changes.get("headers", (HEADER,) * ranks.size)
    address = 0 if out is None else out.data_ptr()
    done: int = ranks.rings[rank].finish(number, headers, what, ord(code), root, part, address, 0.0)
    return done


def compiled_ranks(ranks: Group) -> list[int]:
    return [rank for rank, form in enumerate(ranks.forms) if form == "compiled"]


def differences(ranks: Group, what: int, code: str, count: int, root: int) -> Iterator[str]:
    """Make one call, and yield a line for each rank whose result differs."""
    dtype, size = DTYPES[code], ranks.size
    parted = what in (REDUCED_PART, PART_OF_ROOT, PART_OF_EACH)
    tensors = [given(rank, count * size if parted else count, dtype) for rank in range(size)]
    number = ranks.post_all(HEADER, tensors)
    for rank in compiled_ranks(ranks):
        result = expected(what, tensors, rank, root)
        out = torch.full((0 if result is None else result.numel(),), 99, dtype=dtype)
        done = finish(ranks, rank, number, what, out, count * dtype.itemsize, code=code, root=root)
        if done != DONE or (result is not None and not same_bits(out, result)):
            yield f"{MOVEMENTS[what]} {code} x {count}, rank {rank} of {size}, root {root}: {done} {out} {result}"
    ranks.release_all(number)


@pytest.mark.parametrize("what", range(len(MOVEMENTS)), ids=MOVEMENTS)
@pytest.mark.parametrize("size", [2, 3, 5])
def test_result_equals_torchs(forms: tuple[str, str], size: int, what: int) -> None:
    ranks = Group(forms, size)
    cases = [(code, count, root) for code in DTYPES for count in COUNTS for root in {0, size - 1}]
    assert [line for case in cases for line in differences(ranks, what, *case)] == []


@pytest.mark.parametrize("offset", [1, 2, 3])
def test_output_may_begin_anywhere(forms: tuple[str, str], offset: int) -> None:
    ranks = Group(forms, 2)
    tensors = [given(rank, 9, torch.float32) for rank in range(2)]
    number = ranks.post_all(HEADER, tensors)
    for rank in compiled_ranks(ranks):
        room = torch.full((9 + 2 * offset,), 99.0)
        assert finish(ranks, rank, number, REDUCED, room[offset:], 36) == DONE
        assert same_bits(room[offset : offset + 9], tensors[0] + tensors[1])
        assert torch.cat((room[:offset], room[offset + 9 :])).eq(99).all()


@pytest.mark.parametrize("size", [2, 5])
def test_output_may_be_the_input(forms: tuple[str, str], size: int) -> None:
    ranks = Group(forms, size)
    tensors = [given(rank, 7, torch.float64) for rank in range(size)]
    result = functools.reduce(torch.add, tensors)
    number = ranks.post_all(HEADER, tensors)
    for rank in compiled_ranks(ranks):
        assert finish(ranks, rank, number, REDUCED, tensors[rank], 56, code="d") == DONE
        assert same_bits(tensors[rank], result)


def test_finished_call_is_released(forms: tuple[str, str]) -> None:
    ranks = Group(forms, 3)
    for _ in range(3):
        number = ranks.post_all(HEADER)
        for rank in compiled_ranks(ranks):
            assert ranks.rings[rank].counter(layout.RELEASED, rank) == number
            assert finish(ranks, rank, number, NOTHING, None, 0) == DONE
            assert ranks.rings[rank].counter(layout.RELEASED, rank) == number + 1


def test_stage_follows_finished_calls(forms: tuple[str, str]) -> None:
    ranks = Group(forms, 2, start=2**31 - 2)
    for _ in range(4):
        number = ranks.post_all(HEADER)
        for rank in compiled_ranks(ranks):
            assert ranks.rings[rank].wait(layout.STAGE, number, 0.0, False) is False
            assert finish(ranks, rank, number, NOTHING, None, 0) == DONE
            assert ranks.rings[rank].counter(layout.STAGE, rank) == number + 1
        for rank, own in enumerate(ranks.rings):
            if ranks.forms[rank] == "python":
                own.advance(layout.RELEASED, number + 1)


def test_call_waits_for_all_ranks(forms: tuple[str, str]) -> None:
    ranks = Group(forms, 3)
    for own in ranks.rings[:2]:
        post(own, HEADER)
    before = bytes(ranks.segment.memory)
    assert {finish(ranks, rank, 0, NOTHING, None, 0) for rank in compiled_ranks(ranks)} == {WAITING}
    assert bytes(ranks.segment.memory) == before


def refused(ranks: Group, number: int, what: int, part: int, **changes: Any) -> list[int]:
    """Return what ``finish`` gives on the compiled ranks, which writes neither the output nor the segment."""
    before, found = bytes(ranks.segment.memory), []
    for rank in compiled_ranks(ranks):
        out = torch.full((64,), 99.0)
        found.append(finish(ranks, rank, number, what, out, part, **changes))
        assert out.eq(99).all()
    assert bytes(ranks.segment.memory) == before
    return found


@pytest.mark.parametrize("rank", [0, 1, 2])
@pytest.mark.parametrize("header", [b"", HEADER[:-1], HEADER + b"!", b"THE same call", b"the same calL"])
def test_other_header_is_left_to_the_caller(forms: tuple[str, str], rank: int, header: bytes) -> None:
    ranks = Group(forms, 3)
    for other, own in enumerate(ranks.rings):
        post(own, header if other == rank else HEADER, torch.ones(4))
    for what in (NOTHING, REDUCED, FROM_ROOT):
        assert set(refused(ranks, 0, what, 16)) == {ARRIVED}


@pytest.mark.parametrize("headers", [(HEADER,), (HEADER,) * 3, [HEADER] * 2, None])
def test_headers_of_another_group_are_left_to_the_caller(forms: tuple[str, str], headers: Any) -> None:
    ranks = Group(forms, 2)
    assert set(refused(ranks, ranks.post_all(HEADER), REDUCED, 0, headers=headers)) == {ARRIVED}


@pytest.mark.parametrize("what", [REDUCED, REDUCED_PART, ALL_PARTS, FROM_ROOT, PART_OF_ROOT, PART_OF_EACH])
@pytest.mark.parametrize("numbers", [0, 3, 5])
def test_data_of_another_length_is_left_to_the_caller(forms: tuple[str, str], what: int, numbers: int) -> None:
    ranks = Group(forms, 2)
    for rank, own in enumerate(ranks.rings):
        post(own, HEADER, torch.ones(numbers if rank == 1 else 4))
    part = 16 if what in (REDUCED, ALL_PARTS, FROM_ROOT) else 8
    assert set(refused(ranks, 0, what, part, root=1)) == {ARRIVED}


@pytest.mark.parametrize("kind", [ABSENT, FAR])
@pytest.mark.parametrize("what", [REDUCED, ALL_PARTS, FROM_ROOT])
def test_data_of_another_kind_is_left_to_the_caller(forms: tuple[str, str], what: int, kind: int) -> None:
    ranks = Group(forms, 2)
    for rank, own in enumerate(ranks.rings):
        post(own, HEADER, torch.ones(4), kind if rank == 1 else INLINE)
    assert set(refused(ranks, 0, what, 16, root=1)) == {ARRIVED}


def test_data_of_ranks_other_than_the_root_does_not_matter(forms: tuple[str, str]) -> None:
    ranks = Group(forms, 2)
    post(ranks.rings[0], HEADER, torch.ones(4))
    post(ranks.rings[1], HEADER, torch.ones(9), ABSENT)
    for rank in compiled_ranks(ranks):
        out = torch.zeros(4)
        assert finish(ranks, rank, 0, FROM_ROOT, out, 16) == DONE
        assert out.eq(1).all()


def test_sum_of_another_dtype_is_left_to_the_caller(forms: tuple[str, str]) -> None:
    ranks = Group(forms, 2)
    number = ranks.post_all(HEADER, [torch.ones(4)] * 2)
    assert set(refused(ranks, number, REDUCED, 16, code="?")) == {ARRIVED}


def test_call_of_an_ended_group_is_left_to_the_caller(forms: tuple[str, str]) -> None:
    ranks = Group(forms, 2)
    number = ranks.post_all(HEADER, [torch.ones(4)] * 2)
    ranks.rings[1].end()
    assert set(refused(ranks, number, REDUCED, 16)) == {ARRIVED}
