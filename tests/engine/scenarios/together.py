"""Objects, coalesced arrays, batches and the NaN finder, on three ranks: the calls and every rank's result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import collshim
from collshim import Communicator, Recv, Send
from tests.engine.worlds import attempt, plain

SIZE = 3

Case = tuple[Callable[[Communicator], Any], list[Any]]


class Unreadable:
    """An object that can be pickled but not unpickled."""

    def __reduce__(self) -> Any:
        return int, ("no number",)


def _mine(comm: Communicator) -> dict[str, Any]:
    return {"rank": comm.rank, "text": "x" * 3000 * comm.rank}


def _own_copy(comm: Communicator) -> tuple[bool, bool]:
    given = [comm.rank]
    found = comm.all_gather_object(given).wait()[comm.rank]
    return found == given, found is given


def _root_keeps_its_object(comm: Communicator) -> bool:
    given = [comm.rank]
    return comm.broadcast_object(given, 1).wait() is given


def _sent(comm: Communicator) -> Any:
    if comm.rank == 0:
        comm.send_object("small", 2).wait()
        comm.send_object(list(range(5000)), 2, tag=7).wait()
    if comm.rank == 2:
        work = comm.recv_object(None)
        return work.wait(), work.source, len(comm.recv_object(0, tag=7).wait())
    return None


def _errors(fn: Callable[[], Any]) -> tuple[str, str]:
    outcome = attempt(lambda: fn().wait())
    return outcome.raised[0] if outcome.raised else "", outcome.text.split("\n")[0]


def _too_large(comm: Communicator) -> Any:
    with collshim.options(object_bytes=100):
        return _errors(lambda: comm.all_gather_object("x" * 200))[0], comm.all_gather_object("x").wait()


def _unreadable(comm: Communicator) -> Any:
    value = Unreadable() if comm.rank == 1 else 5
    kind, text = _errors(lambda: comm.broadcast_object(value, 1))
    return kind, text.partition(": ValueError")[0], comm.all_reduce(torch.ones(1)).wait().item()


OBJECTS: dict[str, Case] = {
    "all_gather_object": (
        lambda c: [(each["rank"], len(each["text"])) for each in c.all_gather_object(_mine(c)).wait()],
        [[(0, 0), (1, 3000), (2, 6000)]] * SIZE,
    ),
    "gather_object": (lambda c: c.gather_object(c.rank, 1).wait(), [None, [0, 1, 2], None]),
    "broadcast_object": (lambda c: c.broadcast_object(_mine(c), 2).wait()["rank"], [2, 2, 2]),
    "broadcast_object, only the root gives": (
        lambda c: (c.broadcast_object({1: 2}) if c.rank == 0 else c.broadcast_object()).wait(),
        [{1: 2}] * SIZE,
    ),
    "scatter_object": (
        lambda c: c.scatter_object(["a", "b" * 5000, None] if c.rank == 1 else None, 1).wait(),
        ["a", "b" * 5000, None],
    ),
    "all_to_all_object": (
        lambda c: c.all_to_all_object([(c.rank, to) for to in range(SIZE)]).wait(),
        [[(source, rank) for source in range(SIZE)] for rank in range(SIZE)],
    ),
    "send_object, recv_object": (_sent, [None, None, ("small", 0, 5000)]),
    "every receiver has a copy of its own": (_own_copy, [(True, False)] * SIZE),
    "the root of a broadcast keeps its object": (_root_keeps_its_object, [False, True, False]),
    "an object that pickle cannot save": (
        lambda c: (_errors(lambda: c.all_gather_object(lambda: None))[0], c.all_gather_object(1).wait()),
        [("ArgumentTypeError", [1, 1, 1])] * SIZE,
    ),
    "an object above the limit": (_too_large, [("ArgumentValueError", ["x", "x", "x"])] * SIZE),
    "too few objects": (
        lambda c: _errors(lambda: c.all_to_all_object([1, 2])),
        [
            (
                "ArgumentValueError",
                f"all_to_all_object: length of input list is 2, should be 3, one per rank (rank {rank} of 3)",
            )
            for rank in range(SIZE)
        ],
    ),
    "an object that cannot be unpickled": (
        _unreadable,
        [
            ("", "", 3.0)
            if rank == 1
            else (
                "CommunicationError",
                "broadcast_object: the object that rank 1 gave cannot be unpickled here",
                3.0,
            )
            for rank in range(SIZE)
        ],
    ),
}


def _lists(comm: Communicator) -> list[Any]:
    rank = comm.rank
    return [torch.full((2, 2), float(rank)), np.full(3, rank, np.int32), torch.tensor(rank + 0.5)]


def _in_place(comm: Communicator) -> Any:
    arrays = _lists(comm)
    found = comm.all_reduce_coalesced(arrays, "max", out=arrays).wait()
    return plain(arrays), all(one is other for one, other in zip(found, arrays, strict=True))


def _gradients(comm: Communicator) -> Any:
    one, other = torch.ones(2, requires_grad=True), torch.ones((), requires_grad=True)
    first, second = comm.all_reduce_coalesced([one, other]).wait()
    (first.sum() * (comm.rank + 1) + second).backward()
    return plain([one.grad, other.grad])


def _written_one_by_one(comm: Communicator) -> Any:
    first, second = comm.all_reduce_coalesced([torch.ones(2), torch.ones(2)]).wait()
    first.add_(1)
    return plain([first, second])


_META = torch.ones(2, device="meta")
_PLACE = torch.zeros(3)
_SHARED = "all_reduce_coalesced: memory of output[1] is shared with output[0], should be its own"

COALESCED: dict[str, Case] = {
    "all_reduce_coalesced": (
        lambda c: plain(c.all_reduce_coalesced(_lists(c)).wait()),
        [plain([torch.full((2, 2), 3.0), np.full(3, 3, np.int32), torch.tensor(4.5)])] * SIZE,
    ),
    "broadcast_coalesced": (
        lambda c: plain(c.broadcast_coalesced(_lists(c), 1).wait()),
        [plain([torch.ones(2, 2), np.ones(3, np.int32), torch.tensor(1.5)])] * SIZE,
    ),
    "all_gather_coalesced": (
        lambda c: plain(c.all_gather_coalesced(_lists(c)[1:]).wait()),
        [plain([np.repeat(np.arange(3, dtype=np.int32), 3).reshape(3, 3), torch.tensor([0.5, 1.5, 2.5])])] * SIZE,
    ),
    "reduce_scatter_coalesced": (
        lambda c: plain(c.reduce_scatter_coalesced([torch.arange(6.0).view(3, 2), np.arange(3) + c.rank]).wait()),
        [plain([torch.tensor([6.0 * r, 6.0 * r + 3]), np.array(3 * r + 3)]) for r in range(SIZE)],
    ),
    "into the arrays themselves": (
        _in_place,
        [(plain([torch.full((2, 2), 2.0), np.full(3, 2, np.int32), torch.tensor(2.5)]), True)] * SIZE,
    ),
    "gradients": (_gradients, [plain([torch.full((2,), 6.0), torch.tensor(3.0)])] * SIZE),
    "a result may be written to": (_written_one_by_one, [plain([torch.full((2,), 4.0), torch.full((2,), 3.0)])] * SIZE),
    "lists of unequal length": (
        lambda c: _errors(lambda: c.all_reduce_coalesced([torch.ones(2)] * (2 if c.rank == 2 else 1))),
        [
            (
                "MismatchError",
                "all_reduce_coalesced: ranks disagree on content: rank 2 has coalesced of 2: (2,), (2,), "
                "the others coalesced of 1: (2,)",
            )
        ]
        * SIZE,
    ),
    **{
        f"{what} among the arrays": (
            lambda c, unsupported=unsupported: (
                _errors(lambda: c.all_reduce_coalesced([torch.ones(2), unsupported]))[0],
                c.barrier().wait(),
            ),  # type: ignore[misc]
            [("ArgumentTypeError", None)] * SIZE,
        )
        for what, unsupported in {"a sparse tensor": torch.eye(2).to_sparse(), "a meta tensor": _META}.items()
    },
    **{
        f"{what} for two results": (
            lambda c, out=out: _errors(lambda: c.all_reduce_coalesced([torch.ones(2)] * 2, out=out)),  # type: ignore[misc]
            [("ArgumentValueError", f"{_SHARED} (rank {rank} of {SIZE})") for rank in range(SIZE)],
        )
        for what, out in {"one place": [_PLACE[:2]] * 2, "places that overlap": [_PLACE[:2], _PLACE[1:]]}.items()
    },
    "an empty list": (
        lambda c: (_errors(lambda: c.all_reduce_coalesced([]))[0], c.barrier().wait()),
        [("ArgumentValueError", None)] * SIZE,
    ),
    "a dtype that the operation does not mean": (
        lambda c: (
            _errors(lambda: c.all_reduce_coalesced([torch.ones(1, dtype=torch.int32), torch.ones(1)], "bor"))[0],
            c.barrier().wait(),
        ),
        [("ArgumentValueError", None)] * SIZE,
    ),
}


def _ring(comm: Communicator, length: int) -> Any:
    before, after = (comm.rank - 1) % SIZE, (comm.rank + 1) % SIZE
    out = torch.empty(length)
    works = comm.batch([Recv(before, out=out), Send(torch.full((length,), comm.rank + 1.0), after)])
    found = [work.wait() for work in works]
    return found[0] is out, out.sum().item() / length, found[1]


def _one_wrong(comm: Communicator) -> Any:
    kind, text = _errors_of_batch(comm)
    if comm.rank == 1:
        comm.send(torch.ones(1), 2).wait()
    return kind, text, comm.recv(1, like=torch.ones(1)).wait().item() if comm.rank == 2 else None


def _errors_of_batch(comm: Communicator) -> tuple[str, str]:
    outcome = attempt(comm.batch, [Send(torch.zeros(1), 2), Send(torch.zeros(1), 3)])
    return outcome.raised[0], outcome.text


BATCHES: dict[str, Case] = {
    "a ring": (lambda c: _ring(c, 4), [(True, float((r - 1) % SIZE + 1), None) for r in range(SIZE)]),
    "a ring of large arrays": (
        lambda c: _ring(c, 100_000),
        [(True, float((r - 1) % SIZE + 1), None) for r in range(SIZE)],
    ),
    "nothing is sent where one is refused": (
        _one_wrong,
        [
            (
                "ArgumentIndexError",
                f"send: destination is 3, should be from 0 to 2 (rank {r} of 3)",
                1.0 if r == 2 else None,
            )
            for r in range(SIZE)
        ],
    ),
}


def _find(comm: Communicator, array: Any, op: str = "all_reduce") -> tuple[str, str]:
    with collshim.options(find_nan=True):
        return _errors(lambda: getattr(comm, op)(array))


def _with_nan(comm: Communicator, shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> torch.Tensor:
    found = torch.ones(shape)
    if comm.rank == 1:
        found.view(-1)[-2:] = float("nan")
    return found.to(dtype)


_FOUND = "all_reduce: rank 1 has NaN: 2 of 6 elements of its input, the first at (1, 1)"

NANS: dict[str, Case] = {
    "in one rank's array": (
        lambda c: _find(c, _with_nan(c, (2, 3))),
        [("NotANumberError", _FOUND)] * SIZE,
    ),
    "in NumPy's": (lambda c: _find(c, _with_nan(c, (2, 3)).numpy()), [("NotANumberError", _FOUND)] * SIZE),
    "in fp8": (
        lambda c: _find(c, _with_nan(c, (2, 3), torch.float8_e5m2)),
        [("NotANumberError", _FOUND)] * SIZE,
    ),
    "in a large array": (
        lambda c: _find(c, _with_nan(c, (5000,))),
        [("NotANumberError", "all_reduce: rank 1 has NaN: 2 of 5000 elements of its input, the first at (4998,)")]
        * SIZE,
    ),
    "in parts": (
        lambda c: _find(c, _with_nan(c, (3, 2)), "reduce_scatter"),
        [
            (
                "NotANumberError",
                "reduce_scatter: rank 1 has NaN: 2 of 6 elements of its input, the first at (2, 0)",
            )
        ]
        * SIZE,
    ),
    "none is found where there is none": (lambda c: _find(c, torch.ones(3)), [("", "")] * SIZE),
    "integers have none": (lambda c: _find(c, torch.ones(3, dtype=torch.int64)), [("", "")] * SIZE),
    "nobody looks unless asked": (
        lambda c: plain(c.all_reduce(_with_nan(c, (4,))).wait()[:2]),
        [plain(torch.full((2,), 3.0))] * SIZE,
    ),
    "one rank looks for itself": (
        lambda c: _find(c, _with_nan(c, (2, 3))) if c.rank == 1 else _errors(lambda: c.all_reduce(torch.ones(2, 3))),
        [("NotANumberError", _FOUND)] * SIZE,
    ),
}
"""Cases with the check on; without it no rank can be informed."""

CASES: dict[str, Case] = {**OBJECTS, **COALESCED, **BATCHES}
CHECKED = ("lists of unequal length",)
"""Cases that need the check on."""


def scenario(name: str, comm: Communicator) -> Any:
    return (CASES | NANS)[name][0](comm)
