"""The loss curves of the five trainings, compared bit by bit, and with those of one process within a tolerance."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Mapping, Sequence
from typing import NamedTuple

Losses = Sequence[float]

TOLERANCE = 1e-5
"""How far a loss may be from that of one process, which adds the same numbers in another order."""


class Curves(NamedTuple):
    """What all trainings came to.

    Attributes:
        by_rank: the losses by framework, for each rank.
        single: the losses of one process.
    """

    by_rank: Sequence[Mapping[str, Losses]]
    single: Losses

    def of(self, framework: str) -> Losses:
        """A framework's losses, as rank 0 has them."""
        return self.by_rank[0][framework]

    def frameworks(self) -> list[str]:
        """Who trained."""
        return list(self.by_rank[0])

    def equal(self, framework: str) -> bool:
        """Whether a framework's losses are, on all ranks and bit by bit, those of the first framework."""
        first = _bits(self.of(self.frameworks()[0]))
        return all(_bits(losses[framework]) == first for losses in self.by_rank)

    def count_equal(self) -> int:
        """How many frameworks' curves are equal."""
        return sum(map(self.equal, self.frameworks()))

    def distance(self, framework: str) -> float:
        """The largest difference of a loss from that of one process."""
        return max(abs(one - other) for one, other in zip(self.of(framework), self.single, strict=True))

    def close(self) -> bool:
        """Whether every curve is within ``TOLERANCE`` of that of one process."""
        return all(self.distance(framework) <= TOLERANCE for framework in self.frameworks())


def fingerprint(losses: Losses) -> str:
    """Eight hexadecimal digits that differ where a single bit of a curve does."""
    return hashlib.sha256(_bits(losses)).hexdigest()[:8]


def _bits(losses: Losses) -> bytes:
    return array("d", losses).tobytes()
