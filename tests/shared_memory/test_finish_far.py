"""``finish`` of the compiled core for data in the ranks' own memory: each result equals torch's, or nothing changes."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from array import array
from typing import Any

import pytest
import torch
from torch import Tensor

from collshim.transports.shared_memory.layout import (
    ABSENT,
    ALL_PARTS,
    ARRIVED,
    DONE,
    FAR,
    FROM_ROOT,
    INLINE,
    LENT,
    NOTHING,
    PART_OF_EACH,
    PART_OF_ROOT,
    REDUCED,
    REDUCED_PART,
    RELEASED,
    STAGE,
    UNREADABLE,
    WAITING,
)
from tests.shared_memory.rings import Group, missing, post
from tests.shared_memory.test_finish import DTYPES, HEADER, expected, given, same_bits

COMPILED = ("compiled", "compiled")
COUNTS = (1, 7, 40_001, 70_000)
"""Numbers in a part: few, and more than one block of a sum."""

WHATS = (REDUCED, REDUCED_PART, ALL_PARTS, FROM_ROOT, PART_OF_ROOT, PART_OF_EACH)
_OF_PARTS = (REDUCED_PART, PART_OF_ROOT, PART_OF_EACH)
_OF_ROOT = (FROM_ROOT, PART_OF_ROOT)

pytestmark = pytest.mark.skipif(missing(COMPILED) != "", reason="the core is not compiled")


class Call:
    """One call of all ranks of a group, which are in this process and read its memory as another's.

    Args:
        reduction: its number; by default that of a sum of float32.
        parts: whether each rank posts the addresses of its parts, and not that of one tensor.
        in_shares: whether each rank makes a share, since all ranks get the result.
    """

    def __init__(
        self, ranks: Group, what: int, tensors: list[Tensor], outs: list[Any], *, reduction: int = ord("f"),
        root: int = 0, parts: bool = False, in_shares: bool = False
    ) -> None:  # fmt: skip
        self.ranks, self.what, self.outs, self.root, self.tensors = ranks, what, outs, root, tensors
        self.reduction = reduction if what in (REDUCED, REDUCED_PART) else 0
        self.part = tensors[0].nbytes // (ranks.size if what in _OF_PARTS else 1)
        for rank, own in enumerate(ranks.rings):
            starts = [tensors[rank].data_ptr()]
            if parts:
                starts = [starts[0] + self.part * other for other in range(ranks.size)]
            shares = tensors[rank] if what == FROM_ROOT and rank == root else outs[rank]
            words = array("Q", [*starts, shares.data_ptr() if in_shares else 0])
            gives = in_shares or what not in _OF_ROOT or rank == root
            self.number = post(own, HEADER, words.tobytes() if gives else b"", FAR if gives else INLINE)

    def finish(self, rank: int, what: int | None = None, seconds: float = 0.0) -> int:
        out = self.outs[rank]
        target = out.data_ptr() if isinstance(out, Tensor) else array("Q", [part.data_ptr() for part in out]).tobytes()
        headers = (HEADER,) * self.ranks.size
        what = self.what if what is None else what
        done: int = self.ranks.rings[rank].finish(
            self.number, headers, what, self.reduction, self.root, self.part, target, seconds
        )
        return done


def readable(size: int) -> Group:
    """Return a group whose ranks may read each other's memory."""
    ranks = Group(COMPILED, size)
    for own in ranks.rings:
        own.read_far(array("q", [os.getpid()] * size).tobytes())
    return ranks


def tensors_of(what: int, size: int, count: int, dtype: torch.dtype) -> list[Tensor]:
    return [given(rank, count * size if what in _OF_PARTS else count, dtype) for rank in range(size)]


def space(what: int, size: int, count: int, dtype: torch.dtype) -> list[Tensor]:
    numbers = count * size if what in (ALL_PARTS, PART_OF_EACH) else count
    return [torch.zeros(numbers, dtype=dtype) for _ in range(size)]


@pytest.mark.parametrize(("what", "parts"), [(what, parts) for what in WHATS for parts in {False, what in _OF_PARTS}])
@pytest.mark.parametrize("size", [2, 3, 5])
def test_result_equals_torchs(size: int, what: int, parts: bool) -> None:
    ranks = readable(size)
    for code, dtype in DTYPES.items():
        for count in COUNTS:
            tensors = tensors_of(what, size, count, dtype)
            results = [expected(what, tensors, rank, size - 1) for rank in range(size)]
            outs = space(what, size, count, dtype)
            call = Call(ranks, what, tensors, outs, reduction=ord(code), root=size - 1, parts=parts)
            gave = [LENT] * (size - 1) + [DONE]  # the others have released it by then
            assert [call.finish(rank) for rank in range(size)] == gave
            for out, result in zip(outs, results, strict=True):
                assert result is not None
                assert same_bits(out, result)


@pytest.mark.parametrize("in_place", [False, True], ids=["apart", "in place"])
@pytest.mark.parametrize("size", [2, 3, 5])
def test_sum_in_shares_equals_torchs(size: int, in_place: bool) -> None:
    ranks = readable(size)
    for code, dtype in DTYPES.items():
        for count in COUNTS:
            tensors = tensors_of(REDUCED, size, count, dtype)
            result = functools.reduce(torch.add, tensors)
            outs = tensors if in_place else space(REDUCED, size, count, dtype)
            call = Call(ranks, REDUCED, tensors, outs, reduction=ord(code), in_shares=True)
            assert [call.finish(rank) for rank in range(size - 1)] == [WAITING] * (size - 1)
            assert [call.finish(rank) for rank in range(size - 1)] == [WAITING] * (size - 1)  # no share is added twice
            assert call.finish(size - 1) == LENT
            assert [call.finish(rank) for rank in range(size - 1)] == [LENT] * (size - 2) + [DONE]
            assert all(same_bits(out, result) for out in outs)


@pytest.mark.parametrize("in_place", [False, True], ids=["apart", "in place"])
@pytest.mark.parametrize("size", [2, 3, 5])
def test_broadcast_in_shares_equals_the_roots(size: int, in_place: bool) -> None:
    ranks, root = readable(size), size // 2
    for count in COUNTS:
        tensors = tensors_of(FROM_ROOT, size, count, torch.int16)
        result, outs = tensors[root].clone(), tensors if in_place else space(FROM_ROOT, size, count, torch.int16)
        call = Call(ranks, FROM_ROOT, tensors, outs, root=root, in_shares=True)
        assert [call.finish(rank) for rank in range(size - 1)] == [WAITING] * (size - 1)
        assert call.finish(size - 1) == LENT
        assert [call.finish(rank) for rank in range(size - 1)] == [LENT] * (size - 2) + [DONE]
        assert all(same_bits(out, result) for out in outs)


def test_broadcast_with_a_rank_that_has_no_output_yet_is_read_from_the_root() -> None:
    ranks, (result, *_) = readable(4), tensors_of(FROM_ROOT, 1, 9, torch.float32)
    outs = space(FROM_ROOT, 4, 9, torch.float32)
    held = array("Q", [result.data_ptr(), result.data_ptr()]), array("Q", [0, outs[2].data_ptr()])
    for rank, kind in enumerate((FAR, INLINE, FAR, ABSENT)):
        post(ranks.rings[rank], HEADER, held[rank // 2].tobytes() if kind == FAR else b"", kind)
    for rank, out in enumerate(outs):
        found = ranks.rings[rank].finish(0, (HEADER,) * 4, FROM_ROOT, 0, 0, 36, out.data_ptr(), 0.0)
        assert found == (DONE if rank == 3 else LENT)
        assert same_bits(out, result)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_sum_may_be_written_over_the_input(size: int) -> None:
    for rank in range(size):
        ranks = readable(size)
        tensors = tensors_of(REDUCED, size, 70_000, torch.float32)
        result = functools.reduce(torch.add, tensors)
        assert Call(ranks, REDUCED, tensors, tensors).finish(rank) == LENT
        assert same_bits(tensors[rank], result)


def test_listed_outputs_are_written() -> None:
    ranks = readable(3)
    tensors = tensors_of(ALL_PARTS, 3, 50, torch.float32)
    outs = [[torch.zeros(50) for _ in range(3)] for _ in range(3)]
    call = Call(ranks, ALL_PARTS, tensors, outs)
    assert [call.finish(rank) for rank in range(3)] == [LENT, LENT, DONE]
    assert all(same_bits(out, tensors[rank]) for own in outs for rank, out in enumerate(own))


def test_rank_that_gets_nothing_waits_for_its_readers() -> None:
    ranks = readable(2)
    call = Call(ranks, REDUCED, [torch.ones(4)] * 2, [torch.zeros(4)] * 2)
    assert call.finish(1, NOTHING) == LENT
    assert [call.finish(0), call.finish(1, NOTHING)] == [DONE, LENT]


def test_released_call_is_not_taken_again() -> None:
    ranks = readable(2)
    call = Call(ranks, FROM_ROOT, [torch.ones(4)] * 2, outs := [torch.zeros(4), torch.zeros(4)])
    assert call.finish(1) == LENT
    outs[1].zero_()
    assert call.finish(1) == LENT
    assert outs[1].eq(0).all()


def test_rank_whose_memory_cannot_be_read_is_named() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    for what in (REDUCED, REDUCED_PART, ALL_PARTS, FROM_ROOT, PART_OF_EACH):
        for in_shares in {False, what in (REDUCED, FROM_ROOT)}:
            ranks = readable(3)
            ranks.rings[0].read_far(array("q", [os.getpid(), os.getpid(), ended.pid]).tobytes())
            outs = space(what, 3, 6, torch.float32)
            call = Call(ranks, what, [torch.ones(6)] * 3, outs, root=2, in_shares=in_shares)
            assert call.finish(0) == UNREADABLE + 2
            assert [ranks.rings[0].counter(which, 0) for which in (STAGE, RELEASED)] == [0, 0]


def test_share_that_cannot_be_read_is_named() -> None:
    ranks = readable(2)
    call = Call(ranks, REDUCED, [torch.ones(6)] * 2, space(REDUCED, 2, 6, torch.float32), in_shares=True)
    assert [call.finish(0), call.finish(1)] == [WAITING, LENT]
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    ranks.rings[0].read_far(array("q", [os.getpid(), ended.pid]).tobytes())
    assert call.finish(0) == UNREADABLE + 1
    assert ranks.rings[0].counter(RELEASED, 0) == 0


def refuses(ranks: Group, what: int = ALL_PARTS, **changes: Any) -> bool:
    """Return whether rank 0 leaves a call to its caller, and writes nothing."""
    outs = [torch.zeros(12) for _ in ranks.rings]
    found = Call(ranks, what, [torch.ones(6) for _ in ranks.rings], outs, **changes).finish(0)
    assert ranks.rings[0].counter(RELEASED, 0) == 0
    return found == ARRIVED and bool(outs[0].eq(0).all())


def test_call_that_the_core_may_not_read_is_left_to_the_caller() -> None:
    assert refuses(Group(COMPILED, 2))


def test_sum_of_another_dtype_is_left_to_the_caller() -> None:
    assert refuses(readable(2), REDUCED, reduction=0)
    assert refuses(readable(2), REDUCED_PART, reduction=0)


def test_call_of_an_ended_group_is_left_to_the_caller() -> None:
    ranks = readable(2)
    ranks.rings[1].end()
    assert refuses(ranks)


def test_group_that_ends_between_the_steps_leaves_the_call_to_the_caller() -> None:
    ranks = readable(2)
    call = Call(ranks, REDUCED, [torch.ones(6)] * 2, outs := space(REDUCED, 2, 6, torch.float32), in_shares=True)
    assert call.finish(0) == WAITING
    ranks.rings[1].advance(STAGE, 1)
    ranks.rings[1].end()
    assert call.finish(0) == ARRIVED
    assert outs[0].eq(torch.tensor([2.0] * 3 + [0.0] * 3)).all()


@pytest.mark.parametrize("kind", [INLINE, ABSENT])
def test_data_of_several_kinds_is_left_to_the_caller(kind: int) -> None:
    ranks, out = readable(2), torch.zeros(12)
    held = torch.ones(6)
    post(ranks.rings[0], HEADER, array("Q", [held.data_ptr(), 0]).tobytes(), FAR)
    post(ranks.rings[1], HEADER, held, kind)
    for what in (REDUCED, ALL_PARTS):
        assert ranks.rings[0].finish(0, (HEADER,) * 2, what, ord("f"), 0, 24, out.data_ptr(), 0.0) == ARRIVED
    assert out.eq(0).all()


def test_list_of_outputs_of_one_is_left_to_the_caller() -> None:
    ranks = readable(2)
    call = Call(ranks, FROM_ROOT, [torch.ones(6)] * 2, [[torch.zeros(6)] * 2] * 2)
    assert call.finish(1) == ARRIVED


def test_processes_are_one_for_each_rank() -> None:
    with pytest.raises(ValueError, match="one process for each rank"):
        Group(COMPILED, 2).rings[0].read_far(array("q", [1]).tobytes())
    with pytest.raises(TypeError):
        Group(COMPILED, 2).rings[0].read_far("one")
