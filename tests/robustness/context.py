"""A rank's state in one round, with its inputs and expected results: each part is full of one number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from collshim.conformance import reference
from collshim.conformance.bindings.answers import mapped
from collshim.conformance.bindings.kinds import KINDS
from collshim.conformance.cases import PART_PER_RANK, Case

SIZE = 3
COLUMNS = 2


class RankContext(NamedTuple):
    """A rank in a group, in one round; a field that only one rank changes is a disagreement with the others.

    Attributes:
        ranks: the group's global ranks, in its order.
        rank: this rank in the group.
        group: the group in the surface's own terms; None for all ranks.
        nonce: makes this round's numbers unique.
        kind: "torch" or "numpy".
        rows: the length of a part; all have ``COLUMNS`` columns.
        root: the root's rank in the group.
        destroyed: a destroyed group, in the surface's terms.
    """

    ranks: tuple[int, ...]
    rank: int
    group: Any
    nonce: int
    kind: str = "torch"
    rows: int = 2
    dtype: torch.dtype = torch.float32
    root: int = 1
    op: str = "sum"
    destroyed: Any = None

    @property
    def is_root(self) -> bool:
        return self.rank == self.root

    @property
    def after(self) -> int:
        """The next rank of the group."""
        return (self.rank + 1) % SIZE

    @property
    def before(self) -> int:
        return (self.rank - 1) % SIZE

    def number(self, giver: int, getter: int = 0) -> int:
        return self.nonce + 10 * giver + 3 * getter

    def full(self, number: float, rows: int | None = None) -> Any:
        tensor = torch.full((self.rows if rows is None else rows, COLUMNS), number, dtype=self.dtype)
        return tensor if self.kind == "torch" else tensor.numpy()

    def own(self) -> Any:
        """Return this rank's input if it is one array."""
        return self.full(self.number(self.rank))

    def parts(self) -> list[Any]:
        """Return this rank's input if it has a part for each."""
        return [self.full(self.number(self.rank, getter)) for getter in range(SIZE)]

    def blank(self, parts: int = 1) -> Any:
        return self.full(-1, parts * self.rows)

    def blanks(self) -> list[Any]:
        return [self.blank() for _ in range(SIZE)]

    def case(self, collective: str) -> Case:
        """Return the call of this round, as the suite describes it."""
        getters = range(SIZE if collective in PART_PER_RANK else 1)
        numbers = [self.number(giver, getter) for giver in range(SIZE) for getter in getters]
        return Case(
            collective,
            size=SIZE,
            shape=(self.rows, COLUMNS),
            dtype=str(self.dtype).removeprefix("torch."),
            reduce_op=self.op,
            root=self.root,
            group=None if self.ranks == tuple(range(SIZE)) else self.ranks,
            kind=self.kind,
            given=tuple(number for number in numbers for _ in range(self.rows * COLUMNS)),
        )

    def result(self, collective: str) -> Any:
        """Return the reference's result for this rank: an array, one per rank, or None."""
        return mapped(reference.of(self.case(collective))[self.rank], KINDS[self.kind].make)

    def from_before(self) -> Any:
        return self.full(self.number(self.before))


def joined(parts: Sequence[Any]) -> Any:
    """Concatenate parts."""
    whole = torch.cat([torch.as_tensor(part) for part in parts])
    return whole if isinstance(parts[0], Tensor) else whole.numpy()


def stacked(parts: Sequence[Any]) -> Any:
    whole = torch.stack([torch.as_tensor(part) for part in parts])
    return whole if isinstance(parts[0], Tensor) else whole.numpy()
