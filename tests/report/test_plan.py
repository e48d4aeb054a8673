"""The choice of cases."""

from __future__ import annotations

import pytest

from collshim.conformance.bindings.binding import Binding
from collshim.conformance.cases import OBJECTS
from collshim.conformance.corners import WIDE
from collshim.conformance.report.plan import Plan
from collshim.conformance.subject import Subject, module
from collshim.frameworks import FRAMEWORKS


def is_asked(plan: Plan, binding: Binding, transport: str, dtype: str) -> bool:
    """Return whether several ranks are asked exact numbers of the dtype, with the first reduction."""
    return any(
        case.dtype == dtype and len(case.ranks) > 1 and case.family == "exact" and not case.gradient
        for case in plan.cases(binding, transport)
        if binding.supports(case) and case.reduce_op == binding.admits.reduce_ops[0]
    )


@pytest.mark.parametrize("sizes", [(), (2,), (3,), (1, 4)], ids=str)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_function_is_asked_wide_dtypes_among_several_ranks(framework: str, sizes: tuple[int, ...]) -> None:
    subjects = [
        (module("mine", framework), "processes"),
        (Subject(framework), "threads"),
        (Subject(framework), "processes"),
    ]
    for subject, transport in subjects:
        plan = Plan(subject, [transport], [framework], sizes=sizes)
        moving = [one for one in plan.bindings() if one.collective not in ("barrier", *OBJECTS)]
        unasked = [
            (binding.name, dtype)
            for binding in moving
            for dtype in WIDE
            if dtype in binding.admits.dtypes and not is_asked(plan, binding, transport, dtype)
        ]
        assert unasked == []
