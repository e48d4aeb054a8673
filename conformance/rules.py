"""By what a subject's answers are judged in a test: as the command judges them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from collshim import ArgumentValueError
from collshim.conformance.bindings.answers import Answer, Failure
from collshim.conformance.bindings.binding import Binding
from collshim.conformance.bindings.kinds import KINDS
from collshim.conformance.cases import Case
from collshim.conformance.comparison import DifferenceError, check
from collshim.conformance.report.listed import NOTHING, Listed
from collshim.conformance.report.results import FAIL
from collshim.conformance.report.runner import differing
from collshim.conformance.report.verdicts import Verdicts
from collshim.conformance.subject import ADAPTERS, Subject


class Rules:
    """What is asked of a subject, and what its answers must be.

    Args:
        subject: what is tested.
        xfails: what is known to fail.
        skips: what is not asked.
        kinds: of arrays; those that the subject takes where there are none.

    Raises:
        ArgumentValueError: there is no such kind.
    """

    def __init__(
        self, subject: Subject = ADAPTERS, xfails: Listed = NOTHING, skips: Listed = NOTHING, kinds: Sequence[str] = ()
    ) -> None:
        unknown = [kind for kind in kinds if kind not in KINDS]
        if unknown:
            raise ArgumentValueError(f"kinds of arrays are {', '.join(unknown)}, should be {' or '.join(KINDS)}")
        self.subject = subject
        self._xfails = xfails
        self._skips = skips
        self._kinds = kinds or subject.kinds

    @cached_property
    def _verdicts(self) -> Verdicts:
        return Verdicts.of(self.subject, self._xfails)

    def admits(self, binding: Binding, case: Case) -> bool:
        """Whether the case is asked."""
        if case.kind not in self._kinds or self._skips.entry(binding.name, case) is not None:
            return False
        return self._verdicts.known(binding, case) is None

    def check(self, binding: Binding, case: Case, answers: Sequence[Answer | Failure]) -> None:
        """Compare the answers of all ranks.

        Raises:
            DifferenceError: some differ, and are not known to.
        """
        if not self.subject.module:
            check([binding] * case.size, case, answers)
            return
        lines = differing(binding, case, answers, texts=False)
        outcome, why = self._verdicts.verdict(binding, case, lines)
        if outcome == FAIL:
            raise DifferenceError(f"{binding.name}: {case}\n{why}")
