"""The rules for a subject's answers in tests of drawn cases; the command applies the same."""

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
from collshim.conformance.report.plan import Plan
from collshim.conformance.report.results import FAIL
from collshim.conformance.report.runner import differing
from collshim.conformance.report.verdicts import Verdicts


class Rules:
    """The cases that a subject runs, and the check of its answers.

    Args:
        plan: the cases, and the subject.
        xfails: the cases known to fail.

    Raises:
        ArgumentValueError: a kind of array in the plan does not exist.
    """

    def __init__(self, plan: Plan, xfails: Listed = NOTHING) -> None:
        unknown = [kind for kind in plan.kinds if kind not in KINDS]
        if unknown:
            raise ArgumentValueError(f"kinds of arrays are {', '.join(unknown)}, should be {' or '.join(KINDS)}")
        self.subject = plan.subject
        self._plan = plan
        self._xfails = xfails

    @cached_property
    def _verdicts(self) -> Verdicts:
        return Verdicts.of(self.subject, self._xfails)

    def sizes(self, sizes: Sequence[int]) -> list[int]:
        """Return the ``sizes`` of worlds that the plan selects."""
        return [size for size in sizes if size in (self._plan.sizes or sizes)]

    def admits(self, binding: Binding, case: Case) -> bool:
        """Return whether the plan includes the case."""
        return self._plan.admits(binding, case)

    def knows(self, binding: Binding, case: Case) -> bool:
        """Return whether the outcome is known without a run, because the case would end or hang the ranks."""
        return self._verdicts.known(binding, case) is not None

    def check(self, binding: Binding, case: Case, answers: Sequence[Answer | Failure]) -> None:
        """Compare the answers of all ranks.

        Raises:
            DifferenceError: an answer differs, and this is not a known failure.
        """
        if not self.subject.module:
            check([binding] * case.size, case, answers)
            return
        lines = differing(binding, case, answers, texts=False)
        outcome, why = self._verdicts.verdict(binding, case, lines)
        if outcome == FAIL:
            raise DifferenceError(f"{binding.name}: {case}\n{why}")
