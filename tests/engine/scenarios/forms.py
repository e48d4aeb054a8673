"""Outputs for each collective: in a caller's memory, contiguous or not, apart from the input or the same.

Every scenario returns plain values: whether the caller got its ``out`` back, what it holds, and what the rest of its
memory holds. The lengths are such that data travels in a fingerprint, or does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from collshim import Communicator, Work
from tests.engine.scenarios.values import numbers

LENGTHS = {"small": 5, "large": 1500}

Into = Callable[[Tensor], Tensor]
"""Makes an output of the shape of the model, with old contents."""


def contiguous(model: Tensor) -> Tensor:
    return torch.full_like(model, -1)


def transposed(model: Tensor) -> Tensor:
    axes = tuple(reversed(range(model.dim())))
    return torch.full(tuple(reversed(model.shape)), -1, dtype=model.dtype).permute(axes)


def strided(model: Tensor) -> Tensor:
    return torch.full((*model.shape, 3), -1, dtype=model.dtype)[..., 1]


PLACES: dict[str, Into] = {"contiguous": contiguous, "transposed": transposed, "strided": strided}


def part(length: int, rank: int, peer: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return numbers((2, length), dtype, rank, peer)


def parts(length: int, rank: int, size: int) -> Tensor:
    return torch.stack([part(length, rank, peer) for peer in range(size)])


def total(length: int, size: int, peer: int = 0) -> Tensor:
    return torch.stack([part(length, rank, peer) for rank in range(size)]).sum(0)


def everyones(length: int, size: int, peer: int = 0) -> Tensor:
    return torch.stack([part(length, rank, peer) for rank in range(size)])


class Form(NamedTuple):
    """A collective: its call and, from length, rank and size, the input of a rank and the contents of its output."""

    call: Callable[[Communicator, Any, Any], Work[Any]]
    given: Callable[[int, int, int], Any]
    result: Callable[[int, int, int], Any]


def _own(length: int, rank: int, size: int) -> Tensor:
    return part(length, rank)


def _total(length: int, rank: int, size: int) -> Tensor:
    return total(length, size)


def _own_total(length: int, rank: int, size: int) -> Tensor:
    return total(length, size, rank)


def _everyones(length: int, rank: int, size: int) -> Tensor:
    return everyones(length, size)


def _everyones_for_it(length: int, rank: int, size: int) -> Tensor:
    return everyones(length, size, rank)


Given = Callable[[int, int, int], Any]


def _on_last(result: Given) -> Given:
    return lambda length, rank, size: result(length, rank, size) if rank == size - 1 else None


def _listed(tensor: Given) -> Given:
    return lambda length, rank, size: list(tensor(length, rank, size))


def _end_to_end(tensor: Given) -> Given:
    return lambda length, rank, size: tensor(length, rank, size).flatten(0, 1)


def _unequal(length: int, rank: int, size: int) -> list[Tensor]:
    return [part(length * (rank + 2 * peer), rank, peer) for peer in range(size)]


def _unequal_for_it(length: int, rank: int, size: int) -> list[Tensor]:
    return [part(length * (peer + 2 * rank), peer, rank) for peer in range(size)]


def _growing(length: int, rank: int, size: int) -> list[Tensor]:
    return [part(length * peer, peer) for peer in range(size)]


def _rows(rank: int, peer: int, size: int) -> int:
    """Return lengths that only the last rank has unequal: the others pass equal ones as unequal all the same."""
    return 3 if rank == peer == size - 1 else 2


def _cut(length: int, rank: int, size: int) -> list[Tensor]:
    return [numbers((_rows(rank, peer, size), length), torch.float64, rank, peer) for peer in range(size)]


def _cut_for_it(length: int, rank: int, size: int) -> list[Tensor]:
    return [numbers((_rows(peer, rank, size), length), torch.float64, peer, rank) for peer in range(size)]


def _joined(tensors: Given) -> Given:
    return lambda length, rank, size: torch.cat(tensors(length, rank, size))


def _in_splits(comm: Communicator, given: Tensor, out: Tensor) -> Work[Any]:
    sent = tuple(_rows(comm.rank, peer, comm.size) for peer in range(comm.size))
    received = tuple(_rows(peer, comm.rank, comm.size) for peer in range(comm.size))
    return comm.all_to_all(given, out=out, splits=(sent, received))


def _around(comm: Communicator, given: Tensor, out: Tensor) -> Work[Any]:
    arriving = comm.recv((comm.rank - 1) % comm.size, out=out)
    comm.send(given, (comm.rank + 1) % comm.size).wait()
    return arriving


def _from_last(comm: Communicator, given: Tensor, out: Tensor) -> Work[Any]:
    root = comm.size - 1
    return comm.broadcast(given if comm.rank == root else out, root, out=out)


def _all_gather(comm: Communicator, given: Tensor, out: Any) -> Work[Any]:
    return comm.all_gather(given, out=out)


def _gather(comm: Communicator, given: Tensor, out: Any) -> Work[Any]:
    return comm.gather(given, comm.size - 1, out=out)


def _reduce_scatter(comm: Communicator, given: Tensor, out: Tensor) -> Work[Any]:
    return comm.reduce_scatter(given, out=out)


def _all_to_all(comm: Communicator, given: Any, out: Any) -> Work[Any]:
    return comm.all_to_all(given, out=out)


INTO: dict[str, Form] = {
    "all_reduce": Form(lambda c, x, out: c.all_reduce(x, out=out), _own, _total),
    "reduce": Form(lambda c, x, out: c.reduce(x, c.size - 1, out=out), _own, _on_last(_total)),
    "broadcast": Form(_from_last, _own, lambda length, rank, size: part(length, size - 1)),
    "all_gather": Form(_all_gather, _own, _everyones),
    "all_gather into a list": Form(_all_gather, _own, _listed(_everyones)),
    "all_gather into an unequal list": Form(_all_gather, lambda n, rank, size: part(n * rank, rank), _growing),
    "gather": Form(_gather, _own, _on_last(_everyones)),
    "gather into a list": Form(_gather, _own, _on_last(_listed(_everyones))),
    "scatter": Form(
        lambda c, x, out: c.scatter(x if c.rank == 0 else None, 0, out=out),
        parts,
        lambda length, rank, size: part(length, 0, rank),
    ),
    "reduce_scatter": Form(_reduce_scatter, parts, _own_total),
    "all_to_all": Form(_all_to_all, parts, _everyones_for_it),
    "all_to_all into a list": Form(_all_to_all, parts, _listed(_everyones_for_it)),
    "all_to_all of a list into one array": Form(_all_to_all, _listed(parts), _everyones_for_it),
    "all_to_all into an unequal list": Form(_all_to_all, _unequal, _unequal_for_it),
    "all_gather end to end": Form(_all_gather, _own, _end_to_end(_everyones)),
    "gather end to end": Form(_gather, _own, _on_last(_end_to_end(_everyones))),
    "reduce_scatter of parts end to end": Form(_reduce_scatter, _end_to_end(parts), _own_total),
    "all_to_all end to end": Form(_all_to_all, _end_to_end(parts), _end_to_end(_everyones_for_it)),
    "all_to_all in splits": Form(_in_splits, _joined(_cut), _joined(_cut_for_it)),
    "all_to_all of lists that are unequal on the last rank": Form(_all_to_all, _cut, _cut_for_it),
    "recv": Form(_around, _own, lambda length, rank, size: part(length, (rank - 1) % size)),
}


def _into(name: str, comm: Communicator, length: int, place: Into) -> Any:
    """Call twice: the second call is not validated again."""
    form, rank, size = INTO[name], comm.rank, comm.size
    expected = form.result(length, rank, size)
    out = None if expected is None else _changed(expected, place)
    result = [form.call(comm, form.given(length, rank, size), out).wait() for _ in range(2)][-1]
    return result is out, out is None or _equal(out, expected)


def _changed(tensors: Any, place: Into) -> Any:
    return [place(tensor) for tensor in tensors] if isinstance(tensors, list) else place(tensors)


def _equal(found: Tensor | Sequence[Tensor], expected: Any) -> bool:
    if isinstance(expected, Tensor):
        return isinstance(found, Tensor) and torch.equal(found, expected)
    return all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


OTHER_DTYPES = "all_to_all in splits of other dtypes"


def _in_splits_of_other_dtypes(comm: Communicator, length: int, place: Into) -> Any:
    """Use splits of bytes that no backend has a type for, and of numbers with a lazy conjugation."""
    rows = (2,) * comm.size
    right = []
    for dtype in (torch.int16, torch.complex64):
        tensors = [everyones(length, comm.size, peer).flatten(0, 1).to(dtype) * (1 + peer) for peer in range(comm.size)]
        tensors = [tensor + 1j * tensor if tensor.is_complex() else tensor for tensor in tensors]
        for given in (tensors, tensors, [tensor.conj() for tensor in tensors]):
            out = place(torch.zeros_like(given[0]))
            comm.all_to_all(given[comm.rank], out=out, splits=(rows, rows)).wait()
            expected = torch.cat([tensor[2 * comm.rank : 2 * comm.rank + 2] for tensor in given])
            right.append(torch.equal(out, expected))
    return True, all(right)


def into() -> dict[str, partial[Any]]:
    scenarios = {name: partial(_into, name) for name in INTO} | {OTHER_DTYPES: partial(_in_splits_of_other_dtypes)}
    return {
        f"{name}, {place}, {length}": partial(scenario, length=LENGTHS[length], place=PLACES[place])
        for name, scenario in scenarios.items()
        for place in PLACES
        for length in LENGTHS
    }
