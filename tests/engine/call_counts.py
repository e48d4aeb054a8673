"""The number of Python calls into collshim's files that one warmed-up call takes, and of moves to another file.

They are counted on rank 1 of 2, mostly for small calls: if it arrives first and waits for the other, and if it arrives
last, which between threads does the work of both. Unlike times the counts are exact: ``BOUNDS`` hold on a busy machine
too.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Collection, Iterator
from functools import cache, partial
from itertools import count as count_from
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import torch

import collshim
import collshim.oneflow as flow
import collshim.tensorflow as tensorflow
import collshim.torch.distributed as dist
from collshim import Communicator
from collshim.megengine.distributed import init_process_group as init_megengine
from collshim.megengine.functional import distributed as megengine
from collshim.mindspore.communication import comm_func as mindspore
from collshim.mindspore.communication import init as init_mindspore
from tests.engine.worlds import on_ranks, world

COUNTED = 1
"""The rank that is counted, of two."""

REPETITIONS = 5
"""The repetitions of which the least count is used: other activity of the machine only adds."""

PAUSE = 0.005
"""The seconds by which the last rank is late, in which the other starts to wait."""

_INLINED = ("<listcomp>", "<dictcomp>", "<setcomp>")
"""Calls up to Python 3.11 only."""


class Count(NamedTuple):
    """Calls into collshim's files, and moves from one of them to another."""

    calls: int
    moves: int


class Counts(NamedTuple):
    """The counts of a rank that arrives first, and of one that arrives last."""

    first: Count
    last: Count


class _Profile:
    """A callback of ``sys.setprofile`` that keeps the file of every call into collshim."""

    def __init__(self) -> None:
        self.files: list[str] = []

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_name not in _INLINED and is_collshims(code.co_filename):
            self.files.append(code.co_filename)


def _folders() -> Iterator[str]:
    """Yield the package's folder, and the targets of its links."""
    package = Path(collshim.__file__).parent
    for folder in (package, *(entry for entry in package.iterdir() if entry.is_symlink())):
        yield os.path.realpath(folder) + os.sep


_FOLDERS = tuple(_folders())


@cache
def is_collshims(filename: str) -> bool:
    """Return whether the file belongs to the engine or an adapter."""
    return os.path.realpath(filename).startswith(_FOLDERS)


def count(call: Callable[[], object]) -> Count:
    """Count one call on this thread."""
    profile = _Profile()
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return Count(len(profile.files), sum(one != next_one for one, next_one in pairwise(profile.files)))


def measure(transport: str, names: Collection[str]) -> dict[str, Counts]:
    """Measure these entries of ``_calls``."""
    ranks: list[dict[str, Counts]] = on_ranks(_counts, 2, transport, tuple(names), wait=30.0)
    return ranks[COUNTED]


def _counts(names: Collection[str]) -> dict[str, Counts]:
    comm, found = world(), dict[str, Counts]()
    calls = _calls(comm)

    def step() -> None:
        for name in names:
            found[name] = Counts(_least(calls[name], comm, True), _least(calls[name], comm, False))

    tensorflow.distribute.MultiWorkerMirroredStrategy().run(step)
    return found


def _least(call: Callable[[], object], comm: Communicator, counted_first: bool) -> Count:
    """Return the least count of several repetitions."""
    call()
    counts = [_one(call, comm, (comm.rank == COUNTED) is counted_first) for _ in range(REPETITIONS)]
    return Count(min(one.calls for one in counts), min(one.moves for one in counts))


def _one(call: Callable[[], object], comm: Communicator, first: bool) -> Count:
    comm.barrier().wait()
    if not first:
        time.sleep(PAUSE)
    return count(call)


def _calls(comm: Communicator) -> dict[str, Callable[[], object]]:
    """Return every call that can be counted, on this rank."""
    _initialize(comm)
    x, one, large = torch.ones(4), torch.ones(1), torch.ones(1 << 20)
    parts, joined = [torch.empty(4) for _ in range(comm.size)], torch.empty(4 * comm.size)
    messages: dict[str, Callable[[], object]] = {
        "engine send 16 B": lambda: comm.send(x, 1 - comm.rank).wait(),
        "engine recv 16 B": lambda: comm.recv(1 - comm.rank, out=x).wait(),
    }
    send, recv = messages.values()
    lengths, constant = count_from(5), tensorflow.constant([1.0] * 4)
    return {
        "engine all_reduce 16 B, out=": lambda: comm.all_reduce(x, out=x).wait(),
        "engine all_reduce 4 B": lambda: comm.all_reduce(one).wait(),
        "engine all_reduce 16 B, avg": lambda: comm.all_reduce(x, "avg").wait(),
        "engine all_gather 16 B, out=list": lambda: comm.all_gather(x, out=parts).wait(),
        "engine send 16 B": send if comm.rank == COUNTED else recv,
        "engine recv 16 B": recv if comm.rank == COUNTED else send,
        "torch all_reduce 16 B": lambda: dist.all_reduce(x),
        "torch all_reduce 4 MB": lambda: dist.all_reduce(large),
        "torch all_reduce 4 MB, async_op": lambda: _waited(dist.all_reduce(large, async_op=True)),
        "torch all_reduce, new shape": lambda: dist.all_reduce(torch.ones(next(lengths))),
        "torch all_reduce 2 x 16 B, coalesced": partial(_coalesced, torch.ones(4), torch.ones(4)),
        "torch all_gather 16 B, list": lambda: dist.all_gather(parts, x),
        "torch all_gather_single 16 B": lambda: dist.all_gather_single(joined, x),
        "mindspore all_gather_into_tensor 16 B": lambda: mindspore.all_gather_into_tensor(x),
        "megengine all_gather 16 B": lambda: megengine.all_gather(x),
        "oneflow all_gather_into_tensor 16 B": lambda: flow.comm.all_gather_into_tensor(joined, x),
        "tensorflow all_gather 16 B": lambda: tensorflow.distribute.get_replica_context().all_gather(constant, axis=0),
    }


def _waited(work: Any) -> None:
    work.wait()


def _coalesced(*tensors: torch.Tensor) -> None:
    with dist._coalescing_manager():
        for tensor in tensors:
            dist.all_reduce(tensor)


def _initialize(comm: Communicator) -> None:
    """Let every adapter join the existing world."""
    dist.init_process_group("gloo")
    init_mindspore()
    init_megengine("127.0.0.1", 1, comm.size, comm.rank, comm.rank)  # the address is not used
