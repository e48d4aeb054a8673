"""A fault in place of an adapter's function, and the check that it was caught."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from collshim.conformance.bindings import find
from collshim.conformance.cases import Case
from collshim.conformance.comparison import DifferenceError, check
from collshim.conformance.pool import Pool

Start = Callable[[dict[str, Any]], Pool]
OPS = SimpleNamespace(SUM="sum", PRODUCT="prod", MIN="min", MAX="max", AVG="avg", BAND="band", BOR="bor", BXOR="bxor")
"""Reductions under the engine's names, which the faults pass to it."""


class Fault(NamedTuple):
    """A broken function in a binding's place, and the words that the message must contain."""

    binding: str
    function: Callable[..., Any]
    says: str
    changes: dict[str, Any] = {}  # noqa: RUF012  # never written
    path: str = ""  # of the broken function, if it is not the binding's


def is_caught(start: Start, fault: Fault) -> None:
    """Check that the fault is reported in a message that names the collective, the spelling and the case."""
    binding = find(fault.binding)
    case = Case(binding.collective, **fault.changes)
    changes = {fault.path or binding.path: fault.function, "torch.distributed.ReduceOp": OPS}
    answers = start(changes).run([binding] * 2, case)
    with pytest.raises(DifferenceError) as caught:
        check([binding] * 2, case, answers)
    message = str(caught.value)
    assert message.startswith(f"{binding.collective} through {binding.name}: ")
    assert fault.says in message
    assert str(case) in message
