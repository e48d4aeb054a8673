"""Where results go: into a caller's memory, contiguous or not, apart from the input or the same; for each collective.

Every scenario returns plain values: whether the caller got back what it gave as ``out``, what that holds, and what the
rest of its memory holds. Lengths are chosen so that data travels in a fingerprint, or does not.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from collshim import Communicator
from tests.engine.scenarios.values import numbers

LENGTHS = {"small": 5, "large": 1500}

Into = Callable[[Tensor], Tensor]
"""A place of the shape of the model, filled with what is there before."""


def contiguous(model: Tensor) -> Tensor:
    return torch.full_like(model, -1)


def transposed(model: Tensor) -> Tensor:
    axes = tuple(reversed(range(model.dim())))
    return torch.full(tuple(reversed(model.shape)), -1, dtype=model.dtype).permute(axes)


def strided(model: Tensor) -> Tensor:
    return torch.full((*model.shape, 3), -1, dtype=model.dtype)[..., 1]


def conjugated(model: Tensor) -> Tensor:
    return torch.full_like(model, -1).conj()


PLACES: dict[str, Into] = {"contiguous": contiguous, "transposed": transposed, "strided": strided}


def part(length: int, rank: int, peer: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return numbers((2, length), dtype, rank, peer)


def parts(length: int, rank: int, size: int) -> Tensor:
    return torch.stack([part(length, rank, peer) for peer in range(size)])


def total(length: int, size: int, peer: int = 0) -> Tensor:
    return torch.stack([part(length, rank, peer) for rank in range(size)]).sum(0)


def everyones(length: int, size: int, peer: int = 0) -> Tensor:
    return torch.stack([part(length, rank, peer) for rank in range(size)])


def _all_reduce(comm: Communicator, length: int, place: Into) -> Any:
    given = part(length, comm.rank)
    out = place(given)
    return comm.all_reduce(given, out=out).wait() is out, torch.equal(out, total(length, comm.size))


def _reduce(comm: Communicator, length: int, place: Into) -> Any:
    given, root = part(length, comm.rank), comm.size - 1
    out = place(given)
    got = comm.reduce(given, root, out=out if comm.rank == root else None).wait()
    wanted = total(length, comm.size) if comm.rank == root else out
    return got is (out if comm.rank == root else None), torch.equal(out, wanted)


def _broadcast(comm: Communicator, length: int, place: Into) -> Any:
    given, root = part(length, comm.rank), comm.size - 1
    out = place(given)
    got = comm.broadcast(given if comm.rank == root else out, root, out=out).wait()
    return got is out, torch.equal(out, part(length, root))


def _all_gather(comm: Communicator, length: int, place: Into) -> Any:
    out = place(parts(length, 0, comm.size))
    got = comm.all_gather(part(length, comm.rank), out=out).wait()
    return got is out, torch.equal(out, everyones(length, comm.size))


def _all_gather_into_list(comm: Communicator, length: int, place: Into) -> Any:
    out = [place(part(length, rank)) for rank in range(comm.size)]
    got = comm.all_gather(part(length, comm.rank), out=out).wait()
    return got is out, torch.equal(torch.stack(out), everyones(length, comm.size))  # type: ignore[comparison-overlap]


def _all_gather_into_unequal_list(comm: Communicator, length: int, place: Into) -> Any:
    wanted = [part(length * rank, rank) for rank in range(comm.size)]
    out = [place(known) for known in wanted]
    got = comm.all_gather(wanted[comm.rank].clone(), out=out).wait()
    return got is out, all(torch.equal(a, b) for a, b in zip(out, wanted, strict=True))  # type: ignore[comparison-overlap]


def _gather(comm: Communicator, length: int, place: Into) -> Any:
    root = comm.size - 1
    out = place(parts(length, 0, comm.size)) if comm.rank == root else None
    got = comm.gather(part(length, comm.rank), root, out=out).wait()
    return got is out, out is None or torch.equal(out, everyones(length, comm.size))


def _gather_into_list(comm: Communicator, length: int, place: Into) -> Any:
    root = comm.size - 1
    out = [place(part(length, 0)) for _ in range(comm.size)] if comm.rank == root else None
    got = comm.gather(part(length, comm.rank), root, out=out).wait()
    return got is out, out is None or torch.equal(torch.stack(out), everyones(length, comm.size))  # type: ignore[comparison-overlap]


def _scatter(comm: Communicator, length: int, place: Into) -> Any:
    out = place(part(length, 0))
    got = comm.scatter(parts(length, 0, comm.size) if comm.rank == 0 else None, 0, out=out).wait()
    return got is out, torch.equal(out, part(length, 0, comm.rank))


def _reduce_scatter(comm: Communicator, length: int, place: Into) -> Any:
    out = place(part(length, 0))
    got = comm.reduce_scatter(parts(length, comm.rank, comm.size), out=out).wait()
    return got is out, torch.equal(out, total(length, comm.size, comm.rank))


def _all_to_all(comm: Communicator, length: int, place: Into) -> Any:
    out = place(parts(length, 0, comm.size))
    got = comm.all_to_all(parts(length, comm.rank, comm.size), out=out).wait()
    return got is out, torch.equal(out, everyones(length, comm.size, comm.rank))


def _all_to_all_into_list(comm: Communicator, length: int, place: Into) -> Any:
    out = [place(part(length, 0)) for _ in range(comm.size)]
    got = comm.all_to_all(parts(length, comm.rank, comm.size), out=out).wait()
    return got is out, torch.equal(torch.stack(out), everyones(length, comm.size, comm.rank))


def _all_to_all_list_into_stacked(comm: Communicator, length: int, place: Into) -> Any:
    out = place(parts(length, 0, comm.size))
    got = comm.all_to_all(list(parts(length, comm.rank, comm.size)), out=out).wait()
    return got is out, torch.equal(out, everyones(length, comm.size, comm.rank))


def _all_to_all_into_unequal_list(comm: Communicator, length: int, place: Into) -> Any:
    given = [part(length * (comm.rank + 2 * peer), comm.rank, peer) for peer in range(comm.size)]
    wanted = [part(length * (rank + 2 * comm.rank), rank, comm.rank) for rank in range(comm.size)]
    out = [place(known) for known in wanted]
    got = comm.all_to_all(given, out=out).wait()
    return got is out, all(torch.equal(a, b) for a, b in zip(out, wanted, strict=True))


def _end_to_end(stacked: Tensor) -> Tensor:
    return stacked.flatten(0, 1)


def _all_gather_end_to_end(comm: Communicator, length: int, place: Into) -> Any:
    out = place(_end_to_end(parts(length, 0, comm.size)))
    result = [comm.all_gather(part(length, comm.rank), out=out).wait() for _ in range(2)][-1]
    return result is out, torch.equal(out, _end_to_end(everyones(length, comm.size)))


def _gather_end_to_end(comm: Communicator, length: int, place: Into) -> Any:
    root = comm.size - 1
    out = place(_end_to_end(parts(length, 0, comm.size))) if comm.rank == root else None
    result = [comm.gather(part(length, comm.rank), root, out=out).wait() for _ in range(2)][-1]
    return result is out, out is None or torch.equal(out, _end_to_end(everyones(length, comm.size)))


def _reduce_scatter_end_to_end(comm: Communicator, length: int, place: Into) -> Any:
    out, tensor = place(part(length, 0)), _end_to_end(parts(length, comm.rank, comm.size))
    result = [comm.reduce_scatter(tensor, out=out).wait() for _ in range(2)][-1]
    return result is out, torch.equal(out, total(length, comm.size, comm.rank))


def _all_to_all_end_to_end(comm: Communicator, length: int, place: Into) -> Any:
    out, tensor = (_end_to_end(parts(length, comm.rank, comm.size)) for _ in range(2))
    out = place(out)
    result = [comm.all_to_all(tensor, out=out).wait() for _ in range(2)][-1]
    return result is out, torch.equal(out, _end_to_end(everyones(length, comm.size, comm.rank)))


def _all_to_all_in_splits(comm: Communicator, length: int, place: Into) -> Any:
    """Unequal splits on the last rank alone: the others' are equal, which they give as unequal ones all the same."""
    last = comm.size - 1
    rows = [[3 if rank == peer == last else 2 for peer in range(comm.size)] for rank in range(comm.size)]
    tensors = [
        [numbers((rows[rank][peer], length), torch.float64, rank, peer) for peer in range(comm.size)]
        for rank in range(comm.size)
    ]
    expected = torch.cat([tensors[rank][comm.rank] for rank in range(comm.size)])
    out, splits = place(expected), (tuple(rows[comm.rank]), tuple(row[comm.rank] for row in rows))
    result = [comm.all_to_all(torch.cat(tensors[comm.rank]), out=out, splits=splits).wait() for _ in range(2)][-1]
    return result is out, torch.equal(out, expected)


def _all_to_all_in_splits_of_other_dtypes(comm: Communicator, length: int, place: Into) -> Any:
    """Of bytes that no backend has a type for; and of numbers whose conjugation has not been carried out yet."""
    rows = (2,) * comm.size
    right = []
    for dtype in (torch.int16, torch.complex64):
        tensors = [_end_to_end(everyones(length, comm.size, peer)).to(dtype) * (1 + peer) for peer in range(comm.size)]
        tensors = [tensor + 1j * tensor if tensor.is_complex() else tensor for tensor in tensors]
        for given in (tensors, tensors, [tensor.conj() for tensor in tensors]):
            out = place(torch.zeros_like(given[0]))
            comm.all_to_all(given[comm.rank], out=out, splits=(rows, rows)).wait()
            expected = torch.cat([tensor[2 * comm.rank : 2 * comm.rank + 2] for tensor in given])
            right.append(torch.equal(out, expected))
    return True, all(right)


def _all_to_all_lists_unequal_on_the_last_rank(comm: Communicator, length: int, place: Into) -> Any:
    last = comm.size - 1
    shapes = [[(3 if rank == peer == last else 2, length) for peer in range(comm.size)] for rank in range(comm.size)]
    inputs = [numbers(shapes[comm.rank][peer], torch.float64, comm.rank, peer) for peer in range(comm.size)]
    expected = [numbers(shapes[rank][comm.rank], torch.float64, rank, comm.rank) for rank in range(comm.size)]
    out = [place(tensor) for tensor in expected]
    result = [comm.all_to_all(inputs, out=out).wait() for _ in range(2)][-1]
    return result is out, all(torch.equal(a, b) for a, b in zip(out, expected, strict=True))


def _recv(comm: Communicator, length: int, place: Into) -> Any:
    before, after = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    out = place(part(length, 0))
    arriving = comm.recv(before, out=out)
    comm.send(part(length, comm.rank), after).wait()
    return arriving.wait() is out, torch.equal(out, part(length, before))


INTO: dict[str, Callable[[Communicator, int, Into], Any]] = {
    "all_reduce": _all_reduce,
    "reduce": _reduce,
    "broadcast": _broadcast,
    "all_gather": _all_gather,
    "all_gather into a list": _all_gather_into_list,
    "all_gather into an unequal list": _all_gather_into_unequal_list,
    "gather": _gather,
    "gather into a list": _gather_into_list,
    "scatter": _scatter,
    "reduce_scatter": _reduce_scatter,
    "all_to_all": _all_to_all,
    "all_to_all into a list": _all_to_all_into_list,
    "all_to_all of a list into one array": _all_to_all_list_into_stacked,
    "all_to_all into an unequal list": _all_to_all_into_unequal_list,
    "all_gather end to end": _all_gather_end_to_end,
    "gather end to end": _gather_end_to_end,
    "reduce_scatter of parts end to end": _reduce_scatter_end_to_end,
    "all_to_all end to end": _all_to_all_end_to_end,
    "all_to_all in splits": _all_to_all_in_splits,
    "all_to_all in splits of other dtypes": _all_to_all_in_splits_of_other_dtypes,
    "all_to_all of lists that are unequal on the last rank": _all_to_all_lists_unequal_on_the_last_rank,
    "recv": _recv,
}


def into() -> dict[str, partial[Any]]:
    return {
        f"{name}, {place}, {length}": partial(scenario, length=LENGTHS[length], place=PLACES[place])  # type: ignore[call-arg]
        for name, scenario in INTO.items()
        for place in PLACES
        for length in LENGTHS
    }
