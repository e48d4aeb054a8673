"""Worlds for the tests: every wait and every launch has a deadline, and a rank's results can be sent to its parent."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

import collshim
from collshim import Communicator
from collshim.launching.kinds import RANK_KINDS

Scenario = Callable[[Communicator], Any]
"""One rank's program with a communicator of all ranks."""

TRANSPORTS = (*RANK_KINDS, "gloo", "unchecked", "unchecked gloo")
"""Ranks as threads; as processes that compare their calls, and meet in shared memory or over gloo; both unchecked."""

CHECKED = TRANSPORTS[:3]
"""The transports over which ranks compare their calls."""

WAIT = 5.0
"""The limit in seconds of a wait in a collective, unless a test sets another."""

START = 20.0
"""The limit in seconds for the processes of a world, or of a group, to find each other."""


class Outcome(NamedTuple):
    """A function's outcome on one rank: its value, or the classes of its exception (nearest first) and the text."""

    value: Any = None
    raised: tuple[str, ...] = ()
    text: str = ""


def attempt(fn: Callable[..., Any], *args: Any) -> Outcome:
    try:
        return Outcome(fn(*args))
    except Exception as error:
        return Outcome(None, tuple(kind.__name__ for kind in type(error).__mro__), str(error))


def world() -> Communicator:
    """The communicator of all ranks, for functions that run on a rank."""
    return collshim.current().communicator


def on_ranks(
    fn: Callable[..., Any],
    size: int,
    transport: str,
    *args: Any,
    wait: float = WAIT,
    within: float = 200.0,
) -> list[Any]:
    """Return the result of ``fn(*args)`` on every rank. ``wait`` limits collectives, not the start of the world."""
    check = None if transport == "threads" else transport in CHECKED
    carrier = "gloo" if "gloo" in transport else "auto"
    with collshim.options(timeout=START, check=check, transport=carrier):
        ranks = "threads" if transport == "threads" else "processes"
        return collshim.launch(_with_deadline, size, ranks=ranks, args=(fn, wait, *args), timeout=within)


def _with_deadline(fn: Callable[..., Any], wait: float, *args: Any) -> Any:
    world().timeout = wait
    result = fn(*args)
    for comm in collshim.current().state.pop("fresh", []):
        comm.close()
    return result


def run_all(scenarios: Mapping[str, Scenario]) -> dict[str, Outcome]:
    """Return every scenario's outcome on this rank, a dozen on one group; after a failed one each runs again, alone."""
    found, names = dict[str, Outcome](), list(scenarios)
    for start in range(0, len(names), 12):
        dozen = {name: scenarios[name] for name in names[start : start + 12]}
        comm = fresh()
        outcomes = {name: attempt(scenario, comm) for name, scenario in dozen.items()}
        failed = first_anywhere([bool(outcome.raised) for outcome in outcomes.values()])
        comm.close()
        found |= outcomes | {name: _alone(dozen[name]) for name in list(dozen)[failed + 1 :]}
    return found


def _alone(scenario: Scenario) -> Outcome:
    """Run on a group that no other scenario uses, once every rank has finished the scenario before."""
    outcome = attempt(scenario, fresh())
    failed_anywhere(bool(outcome.raised))
    return outcome


def fresh() -> Communicator:
    """Make a group of all ranks without earlier failures."""
    comm = world().subgroup(range(world().size))
    assert comm is not None
    collshim.current().state.setdefault("fresh", []).append(comm)
    return comm


def first_anywhere(here: Sequence[bool]) -> int:
    """Return the first index that is true on any rank; the length if none is."""
    first = here.index(True) if True in here else len(here)
    return int(world().all_reduce(np.array(first), "min").wait(6 * WAIT))


def failed_anywhere(here: bool) -> bool:
    return first_anywhere([here]) == 0


def outcomes(scenarios: Mapping[str, Scenario], size: int, transport: str) -> list[dict[str, Outcome]]:
    """Call ``run_all`` on every rank; find each scenario that ends a whole world, and return its error."""
    try:
        return on_ranks(run_all, size, transport, dict(scenarios))
    except collshim.RankError as error:
        if len(scenarios) == 1:
            return [dict.fromkeys(scenarios, Outcome(None, ("RankError",), str(error)))] * size
    names, half = list(scenarios), len(scenarios) // 2
    halves = [{name: scenarios[name] for name in some} for some in (names[:half], names[half:])]
    first, second = (outcomes(some, size, transport) for some in halves)
    return [one | other for one, other in zip(first, second, strict=True)]


def plain(value: Any) -> Any:
    """Convert arrays to dtype, shape and numbers, which compare with == and can be pickled."""
    if isinstance(value, torch.Tensor):
        found = value.detach()
        narrow = found.dtype.is_floating_point and found.dtype.itemsize == 1
        return str(found.dtype), tuple(found.shape), (found.float() if narrow else found).tolist()
    if isinstance(value, np.ndarray | np.generic):
        found_array = np.asarray(value)
        return f"numpy.{found_array.dtype}", found_array.shape, found_array.tolist()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def values_of(found: Sequence[dict[str, Outcome]], name: str) -> list[Any]:
    """Return every rank's result of one scenario; the error if it failed."""
    return [
        f"{outcome.raised[0]}: {outcome.text}" if outcome.raised else outcome.value
        for outcome in (rank[name] for rank in found)
    ]


def compare(cases: Iterable[tuple[str, Any, Any]]) -> None:
    """Fail with a line for each case, by its name, with an unexpected value; there must be cases."""
    asked = list(cases)
    lines = [
        f"{name}: {reprlib.repr(value)}, should be {reprlib.repr(expected)}"
        for name, value, expected in asked
        if value != expected
    ]
    if lines or not asked:
        raise AssertionError("\n".join(lines) or "there are no cases")
