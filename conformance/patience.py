"""A limit on the hanging cases of a test: hypothesis would try hundreds of cases, and wait for each one's deadline.

After a few cases without an answer, the test tries no new cases. These cases are answered from memory, so that
hypothesis can still shrink among them and report the smallest.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import reject

from collshim.conformance.bindings.answers import Failure
from collshim.conformance.bindings.binding import Binding
from collshim.conformance.cases import Case
from collshim.conformance.pool import Pool
from collshim.conformance.ranks import Reply

BEARABLE = 3  # cases without an answer in one test
_SILENT = {"NoAnswer", "DeadlineError"}


class Patience:
    """Counts a test's cases without an answer."""

    def __init__(self) -> None:
        self._silent: dict[tuple[tuple[str, ...], Case], list[Reply]] = {}

    def run(self, pool: Pool, bindings: Sequence[Binding], case: Case) -> list[Reply]:
        """Return the answers of ``pool``'s ranks, from memory if they did not answer this case before."""
        key = (tuple(binding.name for binding in bindings), case)
        if key in self._silent:
            return self._silent[key]
        if len(self._silent) >= BEARABLE:
            reject()
        answers = pool.run(bindings, case)
        if any(isinstance(answer, Failure) and _SILENT & set(answer.classes) for answer in answers):
            self._silent[key] = answers
        return answers
