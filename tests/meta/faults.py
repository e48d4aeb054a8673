"""A fault in a function of the baseline adapter, and what it takes to have caught it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from collshim.conformance.bindings import find
from collshim.conformance.cases import Case
from collshim.conformance.comparison import DifferenceError, check
from collshim.conformance.corners import corners, refusals
from collshim.conformance.pool import Pool

Start = Callable[[dict[str, Any]], Pool]


class Fault(NamedTuple):
    """A broken function in a binding's place, and what the message must say of it."""

    binding: str
    function: Callable[..., Any]
    says: str
    changes: dict[str, Any] = {}  # noqa: RUF012  # never written
    path: str = ""  # of the broken function, where it is not the binding's


def passes(start: Start, name: str) -> None:
    """The baseline adapter answers every corner and refusal as the binding says; calls with a fault are not checked."""
    ranks, binding = start({}), find(name)
    for case in [*corners(binding, 2), *refusals(binding, 2)]:
        if not (case.fault or (case.kind == "numpy" and case.layout != "contiguous")):
            check([binding] * 2, case, ranks.run([binding] * 2, case))


def is_caught(start: Start, fault: Fault) -> None:
    """The fault is reported, in a message that names the collective, the spelling and the case."""
    binding = find(fault.binding)
    case = Case(binding.collective, **fault.changes)
    answers = start({fault.path or binding.path: fault.function}).run([binding] * 2, case)
    with pytest.raises(DifferenceError) as caught:
        check([binding] * 2, case, answers)
    message = str(caught.value)
    assert message.startswith(f"{binding.collective} through {binding.name}: ")
    assert fault.says in message
    assert str(case) in message
