"""Works that are pending together, waited for in any order, polled, or dropped."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from collshim import Communicator, Work
from tests.engine.scenarios.forms import LENGTHS, part, total
from tests.engine.scenarios.values import CALLS, GIVEN, OPS, RESULTS, Values
from tests.engine.worlds import attempt, plain

SIZE = 3
ROOT = 1
AT_ONCE = [op for op in OPS if not op.startswith("send")]


def _values(comm: Communicator, length: int) -> Values:
    return Values((2, length), torch.float64, "sum", comm.size)


def _posted(comm: Communicator, length: int) -> dict[str, Work[Any]]:
    """Return one work of every collective, and of a send and a receive."""
    known, mine = _values(comm, length), part(length, comm.rank)
    works = {op: CALLS[op](comm, GIVEN[op](known, comm.rank), known, "sum") for op in AT_ONCE}
    works["recv"] = comm.recv((comm.rank - 1) % comm.size, like=mine)
    return works | {"send": comm.send(mine, (comm.rank + 1) % comm.size)}


def _wanted(comm: Communicator, length: int) -> dict[str, Any]:
    known = _values(comm, length)
    results = {op: RESULTS[op](known, comm.rank, "sum") for op in AT_ONCE}
    return results | {"recv": part(length, (comm.rank - 1) % comm.size), "send": None}


def _same(got: Any, wanted: Any) -> bool:
    return bool(plain(got) == plain(wanted))


def _wrong(comm: Communicator, length: int, got: dict[str, Any]) -> list[str]:
    wanted = _wanted(comm, length)
    return [name for name in wanted if not _same(got[name], wanted[name])]


def _in_reverse(comm: Communicator, length: int) -> Any:
    works = _posted(comm, length)
    return _wrong(comm, length, {name: works[name].wait() for name in reversed(works)})


def _in_another_order_on_each_rank(comm: Communicator, length: int) -> Any:
    works = _posted(comm, length)
    names = list(works)
    turned = names[comm.rank * 7 :] + names[: comm.rank * 7]
    return _wrong(comm, length, {name: works[name].wait() for name in turned})


def _polled(name: str, comm: Communicator, length: int) -> Any:
    """Poll until ``done`` becomes true though nobody waits; the wait then returns at once."""
    works = _posted(comm, length)
    limit = time.monotonic() + 4
    while not works[name].done() and time.monotonic() < limit:
        time.sleep(0.002)
    done = works[name].done()
    got = {known: work.wait() for known, work in works.items()}
    comm.barrier().wait()
    return done, _wrong(comm, length, got)


def _fifty(comm: Communicator, length: int) -> Any:
    works = [comm.all_reduce(part(length, comm.rank) + index) for index in range(50)]
    got = [work.wait() for work in reversed(works)][::-1]
    return [k for k in range(50) if not torch.equal(got[k], total(length, comm.size) + k * comm.size)]


def _free(works: dict[str, Work[Any]]) -> None:
    for work in works.values():
        work.free()


def _dropped(comm: Communicator, length: int) -> Any:
    """Rank 0 waits for nothing and keeps nothing; its peers complete all the same."""
    if comm.rank == 0:
        _free(_posted(comm, length))
        gc.collect()
        litter = [torch.full((length,), -9.0) for _ in range(50)]
        comm.barrier().wait()
        return len(litter) - 50
    works = _posted(comm, length)
    got = {name: work.wait() for name, work in works.items()}
    comm.barrier().wait()
    return len(_wrong(comm, length, got))


def _computes_meanwhile(comm: Communicator, length: int) -> Any:
    """A rank that does not wait delays nobody."""
    works = _posted(comm, length)
    if comm.rank == 0:
        time.sleep(0.4)
    return _wrong(comm, length, {name: work.wait() for name, work in works.items()})


def _late(comm: Communicator, length: int) -> Any:
    """A rank can be late, within the deadline."""
    if comm.rank == 0:
        time.sleep(0.5)
    return _wrong(comm, length, {name: work.wait() for name, work in _posted(comm, length).items()})


def _holds_the_interpreter(comm: Communicator, length: int) -> Any:
    """Gather ragged parts from a sender that is busy for longer than a slice of the root's wait."""
    work = comm.gather_ragged(torch.full((100 * length,), float(comm.rank)), ROOT)
    if comm.rank == 0:
        assert pow(3, 3_000_000) > 0  # one long call during which no other thread of the process runs
    got = work.wait()
    return got if got is None else [part.sum().item() for part in got] == [100.0 * length * r for r in range(3)]


def _tags(comm: Communicator, length: int) -> Any:
    """Messages are distinguished by tag, and keep their order within one."""
    if comm.rank == 0:
        works = [comm.send(part(length, index), 1, tag=index % 2) for index in range(4)]
        return [work.wait() for work in works]
    if comm.rank == 1:
        got = [comm.recv(0, like=part(length, 0), tag=tag) for tag in (1, 0, 1, 0)]
        found = {index: work.wait() for index, work in zip((1, 0, 3, 2), got, strict=True)}
        return [torch.equal(found[index], part(length, index)) for index in range(4)]
    return None


def _exchange(comm: Communicator, length: int) -> Any:
    """Both send before they receive."""
    if comm.rank == 2:
        return True
    leaving = comm.send(part(length, comm.rank), 1 - comm.rank)
    got = comm.recv(1 - comm.rank, like=part(length, 0)).wait()
    leaving.wait()
    return torch.equal(got, part(length, 1 - comm.rank))


def _from_anybody(comm: Communicator, length: int) -> Any:
    if comm.rank:
        comm.send(part(length, comm.rank), 0).wait()
        return comm.barrier().wait()  # else a rank's next message might arrive before another's first
    got = [comm.recv(None, like=part(length, 0)).wait() for _ in range(2)]
    comm.barrier().wait()
    return sorted(rank for rank in (1, 2) if any(torch.equal(item, part(length, rank)) for item in got))


def _nothing_from_anybody(comm: Communicator, length: int) -> Any:
    """Empty arrays arrive too."""
    if comm.rank:
        comm.send(torch.empty(0, 3), 0).wait()
        return comm.barrier().wait()
    works = [comm.recv(None, like=torch.empty(0, 3)) for _ in range(2)]
    shapes = [tuple(work.wait().shape) for work in works]
    comm.barrier().wait()
    return [work.source for work in works] in ([1, 2], [2, 1]) and shapes == [(0, 3)] * 2


def _to_itself(comm: Communicator, length: int) -> Any:
    leaving = comm.send(part(length, comm.rank), comm.rank)
    got = comm.recv(comm.rank, like=part(length, 0)).wait()
    leaving.wait()
    return torch.equal(got, part(length, comm.rank))


def _changed_after_the_wait(comm: Communicator, length: int) -> Any:
    """After a send's wait its array can change."""
    if comm.rank == 0:
        given = part(length, 0)
        comm.send(given, 1).wait()
        given.fill_(-1)
    elif comm.rank == 1:
        time.sleep(0.3)
        return torch.equal(comm.recv(0, like=part(length, 0)).wait(), part(length, 0))
    return True


def _two_threads(comm: Communicator, length: int) -> Any:
    """Another thread of the rank waits for works that this one started."""
    works = [comm.all_reduce(part(length, comm.rank) + index) for index in range(8)]
    found: list[Any] = [None] * 8

    def wait_for(indices: range) -> None:
        for index in indices:
            found[index] = attempt(works[index].wait).value

    threads = [threading.Thread(target=wait_for, args=(range(start, 8, 2),)) for start in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    wanted = [total(length, comm.size) + k * comm.size for k in range(8)]
    return [k for k in range(8) if found[k] is None or not torch.equal(found[k], wanted[k])]


def _two_groups(comm: Communicator, length: int) -> Any:
    """Interleave works of two groups, and wait for them in another order on each rank."""
    other = comm.subgroup([2, 0, 1])
    assert other is not None
    works = [group.all_reduce(part(length, comm.rank)) for _ in range(5) for group in (comm, other)]
    order = works if comm.rank else works[::-1]
    return all(torch.equal(work.wait(), total(length, comm.size)) for work in order)


def _splits_behind_a_discovery(comm: Communicator, length: int) -> Any:
    """Use the same unequal splits twice, both before the first has started, which waits for discovered shapes."""
    rows = [tuple(1 + (rank + peer) % 2 for peer in range(comm.size)) for rank in range(comm.size)]
    tensors = [torch.full((sum(rows[rank]), length), float(rank)) for rank in range(comm.size)]
    outputs, own = [torch.zeros_like(tensors[comm.rank]) for _ in range(2)], rows[comm.rank]
    discovering = comm.all_gather_ragged(torch.ones(comm.rank))
    works = [comm.all_to_all(tensors[comm.rank], out=out, splits=(own, own)) for out in outputs]
    for work in (discovering, *works):
        work.wait()
    expected = torch.cat([tensors[rank][: own[rank]] for rank in range(comm.size)])
    return all(torch.equal(out, expected) for out in outputs)


IN_FLIGHT: dict[str, tuple[Callable[[Communicator, int], Any], list[Any]]] = {
    "waited for in reverse order": (_in_reverse, [[], [], []]),
    "waited for in another order on each rank": (_in_another_order_on_each_rank, [[], [], []]),
    "fifty at once": (_fifty, [[], [], []]),
    "dropped by one rank": (_dropped, [0, 0, 0]),
    "one rank computes meanwhile": (_computes_meanwhile, [[], [], []]),
    "one rank comes late": (_late, [[], [], []]),
    "one rank holds its interpreter": (_holds_the_interpreter, [None, True, None]),
    "messages by tag": (_tags, [[None] * 4, [True] * 4, None]),
    "both send first": (_exchange, [True] * 3),
    "from anybody": (_from_anybody, [[1, 2], None, None]),
    "nothing from anybody": (_nothing_from_anybody, [True, None, None]),
    "to itself": (_to_itself, [True] * 3),
    "sent arrays may change after the wait": (_changed_after_the_wait, [True] * 3),
    "two threads of a rank": (_two_threads, [[], [], []]),
    "two groups": (_two_groups, [True] * 3),
    "splits behind a discovery": (_splits_behind_a_discovery, [True] * 3),
    **{
        f"polled: {name}": (partial(_polled, name), [(True, [])] * 3)
        for name in ("all_reduce", "gather", "gather_ragged", "scatter, ragged", "all_to_all, ragged")
    },
    "polled: recv": (partial(_polled, "recv"), [(True, [])] * 3),
    "polled: send": (partial(_polled, "send"), [(True, [])] * 3),
    "polled: barrier": (partial(_polled, "barrier"), [(True, [])] * 3),
}

SLOW = ("one rank computes meanwhile", "one rank comes late", "one rank holds its interpreter")
CASES = [(name, length) for name in IN_FLIGHT for length in LENGTHS if name not in SLOW or length == "large"]


def scenario(name: str, length: str, comm: Communicator) -> Any:
    return IN_FLIGHT[name][0](comm, LENGTHS[length])
