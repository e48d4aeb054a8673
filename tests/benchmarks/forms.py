"""The cost of lists, concatenated results and a caller's separate tensors over one stacked buffer."""

from __future__ import annotations

from functools import partial
from typing import Any

import collshim
from collshim import Communicator
from collshim.megengine.distributed import init_process_group as init_megengine
from collshim.megengine.functional import distributed as megengine
from collshim.mindspore.communication import comm_func as mindspore
from collshim.mindspore.communication import init as init_mindspore
from tests.benchmarks.measure import DEADLINE, Contender, Samples, concatenate, in_turns, slowest
from tests.benchmarks.operands import zeros

RANKS = 2

COPY = "copy"
"""A copy of the result into fresh memory, on all ranks at once: the cost of one copy here."""

FRESH, GIVEN = "stacked", "stacked, own"
"""The baselines: one buffer of the engine's, and one of the caller's."""

ALLOCATED = {
    "all_gather": ("list", "ragged list", "MindSpore", "MegEngine"),
    "all_to_all": ("list", "MegEngine"),
}
"""Forms that the engine allocates, by collective: lists, and the adapters' concatenated results."""

SEPARATE = {"all_gather": ("separate out",), "all_to_all": ("separate in", "separate out")}
"""The caller's separate tensors, on one side at a time."""

Forms = dict[str, dict[str, Samples]]
"""Times by kind of ranks and by collective."""


def measure_forms(nbytes: int, repeats: int, blocks: int) -> Forms:
    """Measure both collectives among threads and, with the check off, among processes, in turns by blocks."""
    found: Forms = {"threads": {}, "processes": {}}
    for op in ALLOCATED:
        blocked = [(ranks, _block(ranks, op, nbytes, repeats)) for _ in range(blocks) for ranks in found]
        for ranks, among in found.items():
            among[op] = concatenate([samples for known, samples in blocked if known == ranks])
    return found


def _block(ranks: str, op: str, nbytes: int, repeats: int) -> Samples:
    with collshim.options(check=None if ranks == "threads" else False):
        return slowest(collshim.launch(among, RANKS, ranks=ranks, args=(op, nbytes, repeats), timeout=DEADLINE))


def among(op: str, nbytes: int, repeats: int) -> Samples:
    """Measure on one rank."""
    comm = collshim.current().communicator
    init_mindspore()
    init_megengine("127.0.0.1", 1, comm.size, comm.rank, comm.rank)  # the existing world; the address is not used
    contenders = _all_gather(comm, nbytes // 4) if op == "all_gather" else _all_to_all(comm, nbytes // 4)
    return in_turns(contenders, repeats, lambda: comm.barrier().wait())


def _all_gather(comm: Communicator, count: int) -> dict[str, Contender]:
    x, own, separate = zeros(count), zeros(comm.size, count), [zeros(count) for _ in range(comm.size)]
    return {
        FRESH: lambda: comm.all_gather(x).wait(),
        "list": lambda: comm.all_gather(x).then(list).wait(),
        "ragged list": lambda: comm.all_gather_ragged(x).wait(),
        "MindSpore": lambda: mindspore.all_gather_into_tensor(x),
        "MegEngine": lambda: megengine.all_gather(x),
        GIVEN: lambda: comm.all_gather(x, out=own).wait(),
        "separate out": lambda: comm.all_gather(x, out=separate).wait(),
        COPY: own.clone,
    }


def _all_to_all(comm: Communicator, count: int) -> dict[str, Contender]:
    parts, own = (zeros(comm.size, count // comm.size) for _ in range(2))
    given, taken = ([zeros(count // comm.size) for _ in range(comm.size)] for _ in range(2))
    views, shapes = list(parts), [(count // comm.size,)] * comm.size
    exchange: Any = partial(_waited, comm)
    return {
        FRESH: lambda: exchange(parts),
        "list": lambda: exchange(views, shapes=shapes),
        "MegEngine": lambda: megengine.all_to_all(parts.view(-1)),
        GIVEN: lambda: exchange(parts, out=own),
        "separate in": lambda: exchange(given, out=own),
        "separate out": lambda: exchange(parts, out=taken),
        COPY: own.clone,
    }


def _waited(comm: Communicator, parts: Any, **more: Any) -> Any:
    return comm.all_to_all(parts, **more).wait()
