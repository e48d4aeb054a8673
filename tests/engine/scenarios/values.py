"""Every collective on known numbers, and every rank's expected result."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from collshim import Communicator, Work
from collshim.conformance import reference
from tests.engine.worlds import plain

Shape = tuple[int, ...]
Numbers = Callable[[int, int], Tensor]
"""Makes the array that a rank gives, or has for a peer, from the rank and the peer."""

SHAPES: dict[str, Shape] = {"0-d": (), "empty": (0, 3), "small": (3, 2), "large": (41, 30)}
"""Small data travels in the ranks' fingerprints, large data does not."""

REDUCE_OPS: tuple[Any, ...] = (
    "sum",
    "avg",
    "prod",
    "min",
    "max",
    "band",
    "bor",
    "bxor",
    ("premul_sum", 2.0),
)


def numbers(shape: Shape, dtype: torch.dtype, rank: int, peer: int = 0, *, below: int | None = None) -> Tensor:
    """Return integers that differ by rank, peer and position, and are exact in ``dtype``."""
    count = math.prod(shape)
    index = torch.arange(count, dtype=torch.int64)
    mixed = (index * 31 + rank * 101 + peer * 57 + index * (rank + 1) * (peer + 2)) * 2654435761
    limit = below or (2 if dtype is torch.bool else 8 if dtype.itemsize == 1 and dtype.is_floating_point else 100)
    return ((mixed >> 16) % limit).reshape(shape).to(dtype)


def ragged(shape: Shape, rank: int, peer: int = 0) -> Shape:
    """Return a different shape for each rank and peer; some have no elements."""
    return ((rank + 2 * peer) % 4 * max(shape[0], 1), *shape[1:]) if shape else (rank + 2 * peer,)


class Values:
    """The inputs of a world's ranks to one reduction or movement of arrays of one shape and dtype."""

    def __init__(self, shape: Shape, dtype: torch.dtype, reduce_op: Any, size: int) -> None:
        self.shape, self.dtype, self.reduce_op, self.size = shape, dtype, reduce_op, size
        self.root = size - 1

    def of(self, rank: int, peer: int = 0) -> Tensor:
        return numbers(self.shape, self.dtype, rank, peer)

    def operand(self, rank: int, peer: int = 0) -> Tensor:
        """Return numbers small enough for products in every dtype; averages are integers."""
        few = numbers(self.shape, torch.int64, rank, peer, below=2)
        whole = few if self.dtype is torch.bool else few + 1
        return (whole * self.size if self.reduce_op == "avg" else whole).to(self.dtype)

    def unequal(self, rank: int, peer: int = 0) -> Tensor:
        return numbers(ragged(self.shape, rank, peer), self.dtype, rank, peer)

    def parts(self, rank: int) -> list[Tensor]:
        return [self.of(rank, peer) for peer in range(self.size)]

    def unequal_parts(self, rank: int) -> list[Tensor]:
        return [self.unequal(rank, peer) for peer in range(self.size)]

    def everyones(self, numbers: Numbers, peer: int = 0) -> list[Tensor]:
        return [numbers(rank, peer) for rank in range(self.size)]

    def reduced(self, op: Any, peer: int = 0) -> Tensor:
        return reduced(op, self.everyones(self.operand, peer))


def reduced(op: Any, given: Sequence[Tensor]) -> Tensor:
    """Apply the suite's reduction to small integers, computed in 64 bits."""
    dtype = given[0].dtype
    inexact = dtype.is_floating_point or dtype.is_complex
    wide = torch.complex128 if dtype.is_complex else torch.float64 if inexact else torch.int64
    fold = op if op in reference.REDUCE_OPS and op != "avg" else "sum"
    total = torch.from_numpy(reference.all_reduce([part.to(wide).numpy() for part in given], fold)[0])
    if op == "avg":
        total = torch.div(total, len(given), rounding_mode=None if inexact else "trunc")
    return (total if isinstance(op, str) else total * op[1]).to(dtype)


def means_something(op: Any, dtype: torch.dtype) -> bool:
    name = op if isinstance(op, str) else "premul_sum"
    if name in reference.BITWISE:
        return not (dtype.is_floating_point or dtype.is_complex)
    if name in ("min", "max"):
        return not dtype.is_complex
    return dtype is not torch.bool or name in ("sum", "prod")


def scenario(op: str, shape: Shape, dtype: torch.dtype, reduce_op: Any, comm: Communicator) -> Any:
    """Call one collective; return its result, and whether the input is unchanged."""
    known = Values(shape, dtype, reduce_op, comm.size)
    given = GIVEN[op](known, comm.rank)
    copies = [part.clone() for part in _tensors(given)]
    result = CALLS[op](comm, given, known, reduce_op).wait()
    kept = all(torch.equal(_exact(a), _exact(b)) for a, b in zip(copies, _tensors(given), strict=True))
    return plain(result), kept


def expected(op: str, shape: Shape, dtype: torch.dtype, reduce_op: Any, size: int) -> list[Any]:
    """Return the result of ``scenario`` on every rank."""
    known = Values(shape, dtype, reduce_op, size)
    return [(plain(RESULTS[op](known, rank, reduce_op)), True) for rank in range(size)]


def scenarios(ops: Sequence[str], shape: Shape, dtype: torch.dtype, reduce_op: Any = "sum") -> dict[str, partial[Any]]:
    return {op: partial(scenario, op, shape, dtype, reduce_op) for op in ops}


def _exact(tensor: Tensor) -> Tensor:
    if tensor.dtype is torch.complex32:
        return tensor.to(torch.complex64)
    return tensor.float() if tensor.dtype.is_floating_point and tensor.dtype.itemsize == 1 else tensor


def _tensors(given: Any) -> list[Tensor]:
    return [] if given is None else [given] if isinstance(given, Tensor) else list(given)


def _ring(comm: Communicator, given: Tensor, known: Values, discovered: bool) -> Work[Any]:
    """Send to the next rank."""
    before = (comm.rank - 1) % comm.size
    like = None if discovered else known.of(before)
    arriving = comm.recv(before, like=like, discovers=discovered)
    leaving = comm.send(given, (comm.rank + 1) % comm.size, discovers=discovered)
    return arriving.then(lambda received: leaving.wait() or received)


GIVEN: dict[str, Callable[[Values, int], Any]] = {
    "all_reduce": lambda v, r: v.operand(r),
    "reduce": lambda v, r: v.operand(r),
    "broadcast": lambda v, r: v.of(r),
    "broadcast, discovered": lambda v, r: v.of(r) if r == v.root else None,
    "all_gather": lambda v, r: v.of(r),
    "all_gather_ragged": lambda v, r: v.unequal(r),
    "gather": lambda v, r: v.of(r),
    "gather_ragged": lambda v, r: v.unequal(r),
    "scatter, stacked": lambda v, r: torch.stack(v.parts(r)) if r == v.root else None,
    "scatter, list": lambda v, r: v.parts(r) if r == v.root else None,
    "scatter, ragged": lambda v, r: v.unequal_parts(r) if r == v.root else None,
    "reduce_scatter, stacked": lambda v, r: torch.stack([v.operand(r, peer) for peer in range(v.size)]),
    "reduce_scatter, list": lambda v, r: [v.operand(r, peer) for peer in range(v.size)],
    "reduce_scatter, ragged": lambda v, r: [_operand_of(v, r, peer) for peer in range(v.size)],
    "all_to_all, stacked": lambda v, r: torch.stack(v.parts(r)),
    "all_to_all, list": lambda v, r: v.parts(r),
    "all_to_all, ragged": lambda v, r: v.unequal_parts(r),
    "send and recv": lambda v, r: v.of(r),
    "send and recv, discovered": lambda v, r: v.unequal(r),
    "barrier": lambda v, r: None,
}


def _operand_of(v: Values, rank: int, owner: int) -> Tensor:
    """Return a rank's contribution to the ``owner``'s part, in the owner's shape."""
    shape = ragged(v.shape, owner)
    return numbers(shape, torch.int64, rank, owner, below=2).to(v.dtype)


CALLS: dict[str, Callable[[Communicator, Any, Values, Any], Work[Any]]] = {
    "all_reduce": lambda c, x, v, op: c.all_reduce(x, op),
    "reduce": lambda c, x, v, op: c.reduce(x, v.root, op),
    "broadcast": lambda c, x, v, op: c.broadcast(x, v.root),
    "broadcast, discovered": lambda c, x, v, op: c.broadcast(x, v.root, discovers=True),
    "all_gather": lambda c, x, v, op: c.all_gather(x),
    "all_gather_ragged": lambda c, x, v, op: c.all_gather_ragged(x),
    "gather": lambda c, x, v, op: c.gather(x, v.root),
    "gather_ragged": lambda c, x, v, op: c.gather_ragged(x, v.root),
    "scatter, stacked": lambda c, x, v, op: c.scatter(x, v.root, like=v.of(0)),
    "scatter, list": lambda c, x, v, op: c.scatter(x, v.root, like=v.of(0)),
    "scatter, ragged": lambda c, x, v, op: c.scatter(x, v.root, discovers=True),
    "reduce_scatter, stacked": lambda c, x, v, op: c.reduce_scatter(x, op),
    "reduce_scatter, list": lambda c, x, v, op: c.reduce_scatter(x, op),
    "reduce_scatter, ragged": lambda c, x, v, op: c.reduce_scatter(x),
    "all_to_all, stacked": lambda c, x, v, op: c.all_to_all(x),
    "all_to_all, list": lambda c, x, v, op: c.all_to_all(x, discovers=True),
    "all_to_all, ragged": lambda c, x, v, op: c.all_to_all(x, discovers=True),
    "send and recv": lambda c, x, v, op: _ring(c, x, v, False),
    "send and recv, discovered": lambda c, x, v, op: _ring(c, x, v, True),
    "barrier": lambda c, x, v, op: c.barrier(),
}


def _column(v: Values, rank: int) -> list[Tensor]:
    return [v.unequal(sender, rank) for sender in range(v.size)]


RESULTS: dict[str, Callable[[Values, int, Any], Any]] = {
    "all_reduce": lambda v, r, op: v.reduced(op),
    "reduce": lambda v, r, op: v.reduced(op) if r == v.root else None,
    "broadcast": lambda v, r, op: v.of(v.root),
    "broadcast, discovered": lambda v, r, op: v.of(v.root),
    "all_gather": lambda v, r, op: torch.stack(v.everyones(v.of)),
    "all_gather_ragged": lambda v, r, op: v.everyones(v.unequal),
    "gather": lambda v, r, op: torch.stack(v.everyones(v.of)) if r == v.root else None,
    "gather_ragged": lambda v, r, op: v.everyones(v.unequal) if r == v.root else None,
    "scatter, stacked": lambda v, r, op: v.of(v.root, r),
    "scatter, list": lambda v, r, op: v.of(v.root, r),
    "scatter, ragged": lambda v, r, op: v.unequal(v.root, r),
    "reduce_scatter, stacked": lambda v, r, op: v.reduced(op, r),
    "reduce_scatter, list": lambda v, r, op: v.reduced(op, r),
    "reduce_scatter, ragged": lambda v, r, op: reduced("sum", [_operand_of(v, s, r) for s in range(v.size)]),
    "all_to_all, stacked": lambda v, r, op: torch.stack(v.everyones(v.of, r)),
    "all_to_all, list": lambda v, r, op: v.everyones(v.of, r),
    "all_to_all, ragged": lambda v, r, op: _column(v, r),
    "send and recv": lambda v, r, op: v.of((r - 1) % v.size),
    "send and recv, discovered": lambda v, r, op: v.unequal((r - 1) % v.size),
    "barrier": lambda v, r, op: None,
}

OPS = tuple(CALLS)
REDUCTIONS = ("all_reduce", "reduce", "reduce_scatter, stacked", "reduce_scatter, list")
MOVEMENTS = tuple(op for op in OPS if op not in REDUCTIONS and op != "barrier")
