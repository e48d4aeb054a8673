"""Calls of data that does not fit in a slot, made again and again by callers that wait at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any

import torch
from torch import Tensor

import collshim.torch.distributed as dist
from tests.engine.worlds import Outcome, attempt, world

LENGTH = 150_000
"""Numbers of a rank, or of each of its parts; a multiple of the number of ranks. They fill several blocks."""

ROUNDS = 4
"""The first call of its kind is compared in Python, the second in the core, and the last is repeated by it."""

SIZE = 3


@contextmanager
def adapter_group() -> Iterator[None]:
    """Give the adapter its default group, whose calls go in line."""
    dist.init_process_group("gloo")
    try:
        yield
    finally:
        dist.destroy_process_group()


class MineError(RuntimeError):
    """The handler's own error."""


def given(rank: int, turn: int, length: int = LENGTH) -> Tensor:
    return torch.randn(length, generator=torch.Generator().manual_seed(100 * turn + rank))


def total(turn: int, length: int = LENGTH) -> Tensor:
    first, *others = (given(rank, turn, length) for rank in range(SIZE))
    for other in others:
        first = first + other
    return first


def _all_reduce(rank: int, turn: int) -> tuple[Tensor, Tensor]:
    out = given(rank, turn)
    dist.all_reduce(out)
    return out, total(turn)


def _maximum(rank: int, turn: int) -> tuple[Tensor, Tensor]:
    out = given(rank, turn)
    dist.all_reduce(out, dist.ReduceOp.MAX)
    return out, torch.stack([given(other, turn) for other in range(SIZE)]).amax(0)


def _reduce(rank: int, turn: int) -> tuple[Tensor, Tensor]:
    out = given(rank, turn)
    dist.reduce(out, 2)
    return (out, total(turn)) if rank == 2 else (out, given(rank, turn))


def _broadcast(rank: int, turn: int) -> tuple[Tensor, Tensor]:
    out = given(rank, turn, 4_000_000)  # the root waits for the others, which take longer than it
    dist.broadcast(out, 1)
    copy = out.clone()
    out.zero_()
    return copy, given(1, turn, 4_000_000)


def _reduce_scatter(rank: int, turn: int) -> tuple[Tensor, Tensor]:
    out = torch.empty(LENGTH // SIZE)
    dist.reduce_scatter_single(out, given(rank, turn))
    return out, total(turn).view(SIZE, -1)[rank]


def _reduce_scatter_list(rank: int, turn: int) -> tuple[Tensor, Tensor]:
    parts = list(given(rank, turn).view(SIZE, -1).unbind())
    dist.reduce_scatter(parts[rank], parts)
    return parts[rank], total(turn).view(SIZE, -1)[rank]


def _all_gather(rank: int, turn: int) -> tuple[Tensor, Tensor]:
    out = torch.empty(SIZE * LENGTH)
    dist.all_gather_single(out, given(rank, turn))
    return out, torch.cat([given(other, turn) for other in range(SIZE)])


def _all_gather_list(rank: int, turn: int) -> tuple[Tensor, Tensor]:
    outs = [torch.empty(LENGTH) for _ in range(SIZE)]
    dist.all_gather(outs, given(rank, turn))
    return torch.cat(outs), torch.cat([given(other, turn) for other in range(SIZE)])


def _gather(rank: int, turn: int) -> tuple[Tensor, Tensor]:
    outs = [torch.empty(LENGTH) for _ in range(SIZE)] if rank == 1 else None
    dist.gather(given(rank, turn), outs, 1)
    if outs is None:
        return torch.empty(0), torch.empty(0)
    return torch.cat(outs), torch.cat([given(other, turn) for other in range(SIZE)])


def _scatter(rank: int, turn: int) -> tuple[Tensor, Tensor]:
    out, parts = torch.empty(LENGTH), [given(other, turn) for other in range(SIZE)]
    dist.scatter(out, parts if rank == 2 else None, 2)
    return out, parts[rank]


def _all_to_all(rank: int, turn: int) -> tuple[Tensor, Tensor]:
    out = torch.empty(LENGTH)
    dist.all_to_all_single(out, given(rank, turn))
    return out, torch.cat([given(other, turn).view(SIZE, -1)[rank] for other in range(SIZE)])


def _all_to_all_list(rank: int, turn: int) -> tuple[Tensor, Tensor]:
    """Send parts that differ in length, some of which fit in a slot."""
    lengths = [[1000 * 8 ** ((sender + receiver) % SIZE) for receiver in range(SIZE)] for sender in range(SIZE)]
    parts = [given(rank, turn, length) + receiver for receiver, length in enumerate(lengths[rank])]
    outs = [torch.empty(lengths[sender][rank]) for sender in range(SIZE)]
    dist.all_to_all(outs, parts)
    expected = [given(sender, turn, lengths[sender][rank]) + rank for sender in range(SIZE)]
    return torch.cat(outs), torch.cat(expected)


def _all_gather_unequal(rank: int, turn: int) -> tuple[Tensor, Tensor]:
    """Gather tensors of which one is empty, one fits in a slot, and one does not."""
    lengths = [0, 1000, LENGTH]
    outs = [torch.empty(length) for length in lengths]
    dist.all_gather(outs, given(rank, turn, lengths[rank]))
    return torch.cat(outs), torch.cat([given(other, turn, length) for other, length in enumerate(lengths)])


def _all_reduce_of_doubles(rank: int, turn: int) -> tuple[Tensor, Tensor]:
    out = given(rank, turn).double() / 3
    dist.all_reduce(out)
    first, second, third = (given(other, turn).double() / 3 for other in range(SIZE))
    return out, first + second + third


CALLS: dict[str, Callable[[int, int], tuple[Tensor, Tensor]]] = {
    "all_reduce": _all_reduce,
    "all_reduce of another kind": _maximum,
    "reduce": _reduce,
    "broadcast": _broadcast,
    "reduce_scatter": _reduce_scatter,
    "reduce_scatter of a list": _reduce_scatter_list,
    "all_gather": _all_gather,
    "all_gather to a list": _all_gather_list,
    "gather": _gather,
    "scatter": _scatter,
    "all_to_all": _all_to_all,
    "all_to_all of unequal parts": _all_to_all_list,
    "all_gather of unequal tensors": _all_gather_unequal,
    "all_reduce of float64": _all_reduce_of_doubles,
}


def repeated() -> dict[str, list[bool]]:
    """Return of each call whether its results have the expected bits."""
    with adapter_group():
        return {name: [_is_right(call, turn) for turn in range(ROUNDS)] for name, call in CALLS.items()}


def _is_right(call: Callable[[int, int], tuple[Tensor, Tensor]], turn: int) -> bool:
    out, expected = call(world().rank, turn)
    return out.numpy().tobytes() == expected.numpy().tobytes()


def _all_reduced(turn: int, tensor: Tensor) -> str:
    return "right" if torch.equal(tensor, total(turn)) else "wrong"


def late(seconds: float) -> list[str]:
    """Let rank 1 come late to a call like earlier ones."""
    with adapter_group():
        found = []
        for turn in range(ROUNDS):
            if world().rank == 1 and turn == ROUNDS - 1:
                time.sleep(seconds)
            dist.all_reduce(tensor := given(world().rank, turn))
            found.append(_all_reduced(turn, tensor))
        return found


def interrupted() -> list[str]:
    """Let a signal's handler raise in rank 0, which waits for rank 1; return what came of each call."""
    with adapter_group():
        found, rank = [], world().rank
        for turn in range(ROUNDS + 1):
            tensor = given(rank, turn)
            if turn != ROUNDS - 1:
                dist.all_reduce(tensor)
            elif rank == 0:
                found.append(_interrupted(partial(dist.all_reduce, tensor)))
                time.sleep(0.5)  # meanwhile a thread completes the call
            else:
                time.sleep(0.2)
                dist.all_reduce(tensor)
            found.append(_all_reduced(turn, tensor))
        return found


def _interrupted(call: Callable[[], object]) -> str:
    def raises(number: int, frame: FrameType | None) -> None:
        raise MineError("from the handler")

    before = signal.signal(signal.SIGALRM, raises)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        return attempt(call).text
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def differing() -> list[Outcome]:
    """Let rank 1 make another call than the others, after two like theirs; return what came of each."""
    with adapter_group():
        tensor, rank = given(world().rank, 0), world().rank
        last = partial(dist.reduce, dst=0) if rank == 1 else dist.all_reduce
        return [attempt(partial(call, tensor)) for call in (dist.all_reduce, dist.all_reduce, last)]


def absent() -> list[Outcome]:
    """Let rank 1 stay away after two calls; return what came of each."""
    with adapter_group():
        tensor, rank = given(world().rank, 0), world().rank
        last = partial(time.sleep, 2.0) if rank == 1 else partial(dist.all_reduce, tensor)
        return [attempt(call) for call in (*[partial(dist.all_reduce, tensor)] * 2, last)]


def unreadable(waits: bool) -> list[Outcome]:
    """Let rank 0 take an ended process for those of the others, after two calls; return what came of each."""
    with adapter_group():
        ended, tensor, found = subprocess.Popen([sys.executable, "-c", ""]), given(world().rank, 0), list[Outcome]()
        ended.wait()
        for turn in range(ROUNDS):
            if world().rank == 0 and turn == ROUNDS - 1:
                group: Any = dist.group.WORLD
                processes = array("q", [os.getpid(), ended.pid, ended.pid])
                group.communicator._transport.shared.ring.read_far(processes.tobytes())
            found.append(attempt(partial(_reduced, tensor, waits=waits)))
        return found


def _reduced(tensor: Tensor, *, waits: bool) -> None:
    work: Any = dist.all_reduce(tensor, async_op=not waits)
    if work is not None:
        work.wait()


def in_turn() -> list[bool]:
    """Return whether calls are right that are all posted before one is waited for."""
    with adapter_group():
        found, rank = [], world().rank
        for _ in range(ROUNDS):
            tensors = [given(rank, turn) for turn in range(10)]  # more than there are slots
            works: list[Any] = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
            for work in works:
                work.wait()
            found += [torch.equal(tensor, total(turn)) for turn, tensor in enumerate(tensors)]
            expected = [torch.stack([total(turn)] * SIZE) for turn in range(10)]
            works = [world().all_gather(tensor) for tensor in tensors]  # which makes its result itself
            found += [torch.equal(work.wait(), rows) for work, rows in zip(works, expected, strict=True)]
        return found
