"""The loss curves of the five trainings; they must be bitwise equal, and close to those of one process."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Mapping, Sequence
from typing import NamedTuple

Losses = Sequence[float]

TOLERANCE = 1e-5
"""The largest allowed difference of a loss from that of one process, which adds the same numbers in another order."""


class Curves(NamedTuple):
    """The losses of all trainings.

    Attributes:
        by_rank: the losses by framework, for each rank.
        single: the losses of one process.
    """

    by_rank: Sequence[Mapping[str, Losses]]
    single: Losses

    def of(self, framework: str) -> Losses:
        """Return a framework's losses on rank 0."""
        return self.by_rank[0][framework]

    def frameworks(self) -> list[str]:
        """Return the names of the frameworks."""
        return list(self.by_rank[0])

    def equal(self, framework: str) -> bool:
        """Return whether a framework's losses are bitwise equal to the first framework's, on all ranks."""
        first = _bits(self.of(self.frameworks()[0]))
        return all(_bits(losses[framework]) == first for losses in self.by_rank)

    def count_equal(self) -> int:
        """Count the frameworks whose curves are equal."""
        return sum(map(self.equal, self.frameworks()))

    def distance(self, framework: str) -> float:
        """Return the largest difference of a loss from that of one process."""
        return max(abs(one - other) for one, other in zip(self.of(framework), self.single, strict=True))

    def close(self) -> bool:
        """Return whether every curve is within ``TOLERANCE`` of that of one process."""
        return all(self.distance(framework) <= TOLERANCE for framework in self.frameworks())


def fingerprint(losses: Losses) -> str:
    """Return eight hexadecimal digits that differ if a single bit of a curve does."""
    return hashlib.sha256(_bits(losses)).hexdigest()[:8]


def _bits(losses: Losses) -> bytes:
    return array("d", losses).tobytes()
