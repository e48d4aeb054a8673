"""How many hanging cases a test tolerates: hypothesis would try hundreds of cases, each to its deadline.

After a few silent cases no further ones are tried in the same test; those that were are answered from memory, so
that hypothesis may still shrink among them, and reports the smallest.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import reject

from collshim.conformance.bindings.answers import Failure
from collshim.conformance.bindings.binding import Binding
from collshim.conformance.cases import Case
from collshim.conformance.pool import Pool
from collshim.conformance.ranks import Reply

BEARABLE = 3  # silent cases in one test
_SILENT = {"NoAnswer", "DeadlineError"}


class Patience:
    """One test's patience with its ranks."""

    def __init__(self) -> None:
        self._silent: dict[tuple[tuple[str, ...], Case], list[Reply]] = {}

    def run(self, pool: Pool, bindings: Sequence[Binding], case: Case) -> list[Reply]:
        """What ``pool``'s ranks answer; from memory where they were silent on this case before."""
        key = (tuple(binding.name for binding in bindings), case)
        if key in self._silent:
            return self._silent[key]
        if len(self._silent) >= BEARABLE:
            reject()
        answers = pool.run(bindings, case)
        if any(isinstance(answer, Failure) and _SILENT & set(answer.classes) for answer in answers):
            self._silent[key] = answers
        return answers
