"""Calls of every kind, each with every rank's expected result: numbers from the seed, exact in all dtypes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from collshim.calls.collective import ALL_GATHER, ALL_REDUCE, BROADCAST, RECV, REDUCE_SCATTER, SEND, Collective
from collshim.calls.repeats import Repeated
from collshim.conformance import reference
from collshim.messages import Recv, Send
from collshim.work import COMPLETE

DTYPES = {"float32": torch.float32, "float64": torch.float64, "int32": torch.int32, "int64": torch.int64}
LENGTHS = {"small": 4, "middle": 5_000, "large": 300_000}
"""Elements of data that travels with the fingerprints or its envelope, that follows, and that ranks share or accept."""

_BELOW = 65_521
"""Four numbers below this limit add up exactly in float32."""

OPS = ("sum", "max", "min")


class Given(NamedTuple):
    """The facts of a call that all ranks know: its number in the stream, the world's seed, and the arrays' form."""

    seed: int
    number: int
    length: int
    dtype: torch.dtype

    def of(self, rank: int, part: int = 0) -> Tensor:
        """Return a rank's input, or its part for another one."""
        places = torch.arange(self.length, dtype=torch.int64)
        start = self.seed % 9973 + 31 * self.number + 101 * rank + 1009 * part
        return ((places * (7 + 2 * rank + part) + start) % _BELOW).to(self.dtype)

    def thing(self, rank: int, part: int = 0) -> dict[str, Any]:
        """Return an object of a rank, of its own size."""
        return {"seed": self.seed, "number": self.number, "rank": rank, "text": "x" * (17 * rank + part)}

    def ragged(self, rank: int) -> Tensor:
        """Return an array of the rank's own length."""
        return self.of(rank)[: self.length - rank]

    def op(self) -> str:
        return OPS[self.number % len(OPS)]

    def root(self, size: int) -> int:
        return self.number % size


class Started(NamedTuple):
    """A work, and the expected result of its wait; ``...`` for anything."""

    work: Any
    expected: Any


Kind = Callable[[Any, Given], list[Started]]
"""Starts one or more calls on a communicator."""


def reduced(op: str, arrays: Sequence[Tensor]) -> Tensor:
    return torch.from_numpy(reference.all_reduce([array.numpy() for array in arrays], op)[0])


def _all(comm: Any, given: Given) -> list[Tensor]:
    return [given.of(rank) for rank in range(comm.size)]


def _parts(comm: Any, given: Given, rank: int) -> Tensor:
    return torch.stack([given.of(rank, part) for part in range(comm.size)])


def all_reduce(comm: Any, given: Given) -> list[Started]:
    expected = reduced(given.op(), _all(comm, given))
    return [Started(comm.all_reduce(given.of(comm.rank), given.op()), expected)]


def all_reduce_in_place(comm: Any, given: Given) -> list[Started]:
    own = given.of(comm.rank)
    return [Started(comm.all_reduce(own, out=own), reduced("sum", _all(comm, given)))]


def reduce_to_root(comm: Any, given: Given) -> list[Started]:
    root = given.root(comm.size)
    expected = reduced("sum", _all(comm, given)) if comm.rank == root else None
    return [Started(comm.reduce(given.of(comm.rank), root), expected)]


def broadcast(comm: Any, given: Given) -> list[Started]:
    root = given.root(comm.size)
    return [Started(comm.broadcast(given.of(comm.rank), root), given.of(root))]


def all_gather(comm: Any, given: Given) -> list[Started]:
    return [Started(comm.all_gather(given.of(comm.rank)), torch.stack(_all(comm, given)))]


def all_gather_ragged(comm: Any, given: Given) -> list[Started]:
    work = comm.all_gather_ragged(given.ragged(comm.rank))
    return [Started(work, [given.ragged(rank) for rank in range(comm.size)])]


def gather(comm: Any, given: Given) -> list[Started]:
    root = given.root(comm.size)
    expected = torch.stack(_all(comm, given)) if comm.rank == root else None
    return [Started(comm.gather(given.of(comm.rank), root), expected)]


def scatter(comm: Any, given: Given) -> list[Started]:
    root, own = given.root(comm.size), given.of(given.root(comm.size), comm.rank)
    if comm.rank == root:
        return [Started(comm.scatter(_parts(comm, given, root), root), own)]
    return [Started(comm.scatter(None, root, like=torch.empty_like(own)), own)]


def reduce_scatter(comm: Any, given: Given) -> list[Started]:
    expected = reduced("sum", [given.of(rank, comm.rank) for rank in range(comm.size)])
    return [Started(comm.reduce_scatter(_parts(comm, given, comm.rank)), expected)]


def all_to_all(comm: Any, given: Given) -> list[Started]:
    expected = torch.stack([given.of(rank, comm.rank) for rank in range(comm.size)])
    return [Started(comm.all_to_all(_parts(comm, given, comm.rank)), expected)]


def barrier(comm: Any, given: Given) -> list[Started]:
    return [Started(comm.barrier(), None)]


def all_reduce_coalesced(comm: Any, given: Given) -> list[Started]:
    arrays = [[given.of(rank, part) for part in range(3)] for rank in range(comm.size)]
    expected = [reduced("sum", [row[part] for row in arrays]) for part in range(3)]
    return [Started(comm.all_reduce_coalesced(arrays[comm.rank]), expected)]


def all_gather_object(comm: Any, given: Given) -> list[Started]:
    expected = [given.thing(rank) for rank in range(comm.size)]
    return [Started(comm.all_gather_object(given.thing(comm.rank)), expected)]


def gather_object(comm: Any, given: Given) -> list[Started]:
    root = given.root(comm.size)
    expected = [given.thing(rank) for rank in range(comm.size)] if comm.rank == root else None
    return [Started(comm.gather_object(given.thing(comm.rank), root), expected)]


def broadcast_object(comm: Any, given: Given) -> list[Started]:
    root = given.root(comm.size)
    return [Started(comm.broadcast_object(given.thing(comm.rank), root), given.thing(root))]


def scatter_object(comm: Any, given: Given) -> list[Started]:
    root = given.root(comm.size)
    things = [given.thing(root, part) for part in range(comm.size)]
    return [Started(comm.scatter_object(things if comm.rank == root else None, root), things[comm.rank])]


def all_to_all_object(comm: Any, given: Given) -> list[Started]:
    own = [given.thing(comm.rank, part) for part in range(comm.size)]
    expected = [given.thing(rank, comm.rank) for rank in range(comm.size)]
    return [Started(comm.all_to_all_object(own), expected)]


def _right(comm: Any) -> int:
    return int((comm.rank + 1) % comm.size)


def _left(comm: Any) -> int:
    return int((comm.rank - 1) % comm.size)


def ring(comm: Any, given: Given) -> list[Started]:
    """Send to the right, with a tag of the call's own, and receive from the left."""
    expected, tag = given.of(_left(comm)), given.number
    sent = comm.send(given.of(comm.rank), _right(comm), tag)
    return [Started(sent, None), Started(comm.recv(_left(comm), like=torch.empty_like(expected), tag=tag), expected)]


def ring_from_any(comm: Any, given: Given) -> list[Started]:
    """Receive first, from any rank."""
    expected, tag = given.of(_left(comm)), given.number
    received = comm.recv(None, like=torch.empty_like(expected), tag=tag)
    return [Started(received, expected), Started(comm.send(given.of(comm.rank), _right(comm), tag), None)]


def crossing(comm: Any, given: Given) -> list[Started]:
    """Send two messages each way along a ring, and receive them in the other order."""
    tags, others = (2 * given.number, 2 * given.number + 1), [given.of(_left(comm), part) for part in (0, 1)]
    sent = [comm.send(given.of(comm.rank, part), _right(comm), tags[part]) for part in (0, 1)]
    got = [comm.recv(_left(comm), like=torch.empty_like(others[part]), tag=tags[part]) for part in (1, 0)]
    return [*(Started(work, None) for work in sent), Started(got[0], others[1]), Started(got[1], others[0])]


def batch(comm: Any, given: Given) -> list[Started]:
    expected, tag = given.of(_left(comm)), given.number
    own = Send(given.of(comm.rank), _right(comm), tag)
    sent, received = comm.batch([own, Recv(_left(comm), tag=tag, like=torch.empty_like(expected))])
    return [Started(sent, None), Started(received, expected)]


def ring_object(comm: Any, given: Given) -> list[Started]:
    sent = comm.send_object(given.thing(comm.rank), _right(comm), given.number)
    return [Started(sent, None), Started(comm.recv_object(_left(comm), given.number), given.thing(_left(comm)))]


class Over(NamedTuple):
    """Calls that were waited for as they were posted."""

    result: Any

    def wait(self) -> Any:
        """Return the result of the last one."""
        return self.result


_TIMES = 4
"""How often a call that waits at once is made: validated, repeated by its plan, and repeated whole by the core."""


def _first(outcomes: Iterable[Any]) -> Any:
    """Return the first outcome that is not None; None if there is none."""
    return next((outcome for outcome in outcomes if outcome is not None), None)


def _at_once(
    comm: Any, collective: Collective, array: Any, out: Any, root: int | None, post: Callable[[], Any]
) -> None:
    """Make a call as an adapter makes it for a caller that waits at once."""
    key = collective, array is out, root
    op = "sum" if collective.reduces else None
    work = _first(known.call(array, out) for known in comm.repeats.get(key, ()))
    if work is None:
        work = comm.repeat_by_plan(collective, array, out, op, root, waits=True)
        if work is COMPLETE:
            call = Repeated(key, (array, out), (array, out), lambda comm, array, out: (array, out), True)
            comm.keep_repeat(collective, op, root, call)
    (post() if work is None else work).wait()


def all_reduce_at_once(comm: Any, given: Given) -> list[Started]:
    own = given.of(comm.rank)
    for _ in range(_TIMES):
        own.copy_(given.of(comm.rank))
        _at_once(comm, ALL_REDUCE, own, own, None, lambda: comm.all_reduce(own, out=own))
    return [Started(Over(own), reduced("sum", _all(comm, given)))]


def broadcast_at_once(comm: Any, given: Given) -> list[Started]:
    root, own = given.root(comm.size), given.of(comm.rank)
    for _ in range(_TIMES):
        own.copy_(given.of(comm.rank))
        _at_once(comm, BROADCAST, own, own, root, lambda: comm.broadcast(own, root, out=own))
    return [Started(Over(own), given.of(root))]


def all_gather_at_once(comm: Any, given: Given) -> list[Started]:
    """Gather into a list."""
    own = given.of(comm.rank)
    places = [torch.empty_like(own) for _ in range(comm.size)]
    for _ in range(_TIMES):
        places[comm.rank].zero_()
        _at_once(comm, ALL_GATHER, own, places, None, lambda: comm.all_gather(own, out=places))
    return [Started(Over(torch.stack(places)), torch.stack(_all(comm, given)))]


def reduce_scatter_at_once(comm: Any, given: Given) -> list[Started]:
    parts, own = _parts(comm, given, comm.rank), torch.empty_like(given.of(comm.rank))
    expected = reduced("sum", [given.of(rank, comm.rank) for rank in range(comm.size)])
    for _ in range(_TIMES):
        own.zero_()
        _at_once(comm, REDUCE_SCATTER, parts, own, None, lambda: comm.reduce_scatter(parts, out=own))
    return [Started(Over(own), expected)]


def _pass_at_once(comm: Any, sends: bool, tensor: Tensor, peer: int, tag: int) -> None:
    """Send or receive as an adapter does for a caller that waits at once."""
    collective, array, out = (SEND, tensor, None) if sends else (RECV, tensor, tensor)
    key, own = (collective, tag, peer), (tensor, list[Any]() if sends else tensor)
    work = _first(known.call(*own) for known in comm.repeats.get(key, ()))
    if work is None:
        work = comm.repeat_by_plan(collective, array, out, tag, peer, waits=True)
        if work is COMPLETE:
            call = Repeated(key, own, (array, out), lambda comm, array, out: (array, out), True)
            comm.keep_repeat(collective, tag, peer, call)
    if work is None:
        work = comm.send(tensor, peer, tag) if sends else comm.recv(peer, out=tensor, tag=tag)
    work.wait()


def ring_at_once(comm: Any, given: Given) -> list[Started]:
    """Send to the right and receive from the left, first the one or first the other."""
    own, got = given.of(comm.rank), torch.empty_like(given.of(_left(comm)))
    for _ in range(_TIMES):
        got.zero_()
        for sends in (True, False) if comm.rank % 2 == 0 else (False, True):
            tensor, peer = (own, _right(comm)) if sends else (got, _left(comm))
            _pass_at_once(comm, sends, tensor, peer, given.number)
    return [Started(Over(got), given.of(_left(comm)))]


WAITED: dict[str, Kind] = {"all_reduce": all_reduce, "all_gather": all_gather, "barrier": barrier, "ring": ring}
"""Kinds in which every rank waits for another one."""

PLAIN: dict[str, Kind] = {
    **WAITED,
    "reduce": reduce_to_root,
    "broadcast": broadcast,
    "gather": gather,
    "scatter": scatter,
    "all_gather_object": all_gather_object,
}
"""Kinds that raw torch has over gloo too."""

KINDS: dict[str, Kind] = {
    **PLAIN,
    "all_reduce_in_place": all_reduce_in_place,
    "all_gather_ragged": all_gather_ragged,
    "reduce_scatter": reduce_scatter,
    "all_to_all": all_to_all,
    "all_reduce_coalesced": all_reduce_coalesced,
    "gather_object": gather_object,
    "broadcast_object": broadcast_object,
    "scatter_object": scatter_object,
    "all_to_all_object": all_to_all_object,
    "ring_from_any": ring_from_any,
    "crossing": crossing,
    "batch": batch,
    "ring_object": ring_object,
    "all_reduce_at_once": all_reduce_at_once,
    "broadcast_at_once": broadcast_at_once,
    "all_gather_at_once": all_gather_at_once,
    "reduce_scatter_at_once": reduce_scatter_at_once,
    "ring_at_once": ring_at_once,
}


def is_right(got: Any, expected: Any) -> bool:
    """Return whether a wait gave the expected result bitwise."""
    if isinstance(expected, Tensor):
        return isinstance(got, Tensor) and got.dtype == expected.dtype and torch.equal(got, expected)
    if isinstance(expected, list):
        return isinstance(got, list) and len(got) == len(expected) and all(map(is_right, got, expected))
    return bool(got == expected)
