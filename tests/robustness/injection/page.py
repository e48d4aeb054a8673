"""The section of ``docs/faults.md`` about faults at any moment: a table of classes, from one run of many trials."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from collshim.conformance.faults.page import INJECTED, merge
from collshim.conformance.reporting.markdown import table
from tests.robustness.injection.classes import CLASSES
from tests.robustness.injection.results import Result
from tests.robustness.injection.trial import RAW, TRANSPORTS
from tests.robustness.injection.verdict import ALLOWED

FACES = (*TRANSPORTS, RAW)
NOT_THERE = "·"

_FATES = {
    "dies": "its process ends without an error",
    "raises": "it raises the injected exception",
    "told": "it raises an error itself",
    "may be told": "it may get an error itself",
    "stays": "it neither ends nor goes on",
    "healthy": "no rank notices",
}

_TEXT = f"""{INJECTED}

`tests/robustness/injection/` draws worlds of two to four ranks from seeds: a stream of mixed calls, each of whose
results is compared, and one fault. `python -m tests.robustness.injection --seeds 0-999` runs these trials, `make test`
runs some, `make thorough` more. This section is written by

```
{{command}}
```

A trial holds if no result is wrong; if every rank but the victim raises an error of the library's own (from `{RAW}`,
any error that it raises) that names the victim, within {ALLOWED:g} s after the deadline; if no rank of a healthy world
gets an error; if no process ends by a signal or hangs; and if no process, file or port is left. The deadline is one to
two seconds, or twice as long if a world is being made. If the machine itself is late, which a thread that sleeps and
wakes measures meanwhile, eight times its delay is added. If a trial is late beside others, or ends before its fault, it
runs again alone. `{RAW}` is the same stream, with the calls that it has, on raw torch.distributed over gloo. A dot
means that a class does not apply: threads cannot be killed or stopped one by one, and torch's steps within a message or
a collective cannot be reached from Python.

Each cell has the number of trials that held, and the number of all. In brackets are the others: a rank hung or got no
error (silent), an error did not name the victim, came late, or something else went wrong.

"""


def section(found: Sequence[Result], command: str) -> str:
    """Return the section's text."""
    rows = []
    for name, each in CLASSES.items():
        cells = [
            _cell([one for one in found if one.trial.kind == name and one.trial.transport == face]) for face in FACES
        ]
        rows.append([name, _FATES[each.fate], *cells])
    totals = [_cell([one for one in found if one.trial.transport == face], brief=True) for face in FACES]
    rows.append(["**all**", "", *totals])
    slowest = max((one.verdict.seconds - one.trial.deadline for one in found if _is_ours(one)), default=0.0)
    told = f"\nThe slowest of collshim's ranks got its error {max(0.0, slowest):.2f} s after its deadline.\n"
    return _TEXT.format(command=command) + table(("class", "the victim", *FACES), rows) + told


def _is_ours(result: Result) -> bool:
    return result.trial.transport != RAW and result.trial.fault.fate != "healthy"


def _cell(found: Sequence[Result], *, brief: bool = False) -> str:
    if not found:
        return NOT_THERE
    text = f"{sum(one.holds for one in found)} of {len(found)}"
    counts: dict[str, int] = {}
    for one in found:
        if not one.holds:
            counts[_miss(one)] = counts.get(_miss(one), 0) + 1
    missed = ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))
    return f"{text} ({missed})" if missed and not brief else text


def _miss(result: Result) -> str:
    """Return the worst defect of a trial that did not hold."""
    reasons = "; ".join(result.verdict.wrong)
    words = {"hang": "hang", "ended by": "signal", "told nothing": "silent", "in step": "wrong error"}
    if result.trial.fault.fate == "healthy" and reasons:
        return "false alarm"
    if reasons:
        return next((word for part, word in words.items() if part in reasons), "other")
    return "unnamed" if result.verdict.unnamed else "late"


def write(path: Path, found: Sequence[Result], command: str) -> None:
    """Write the section to its place on the page."""
    before = path.read_text(encoding="utf-8").partition(INJECTED)[0].rstrip("\n")
    path.write_text(merge(f"{before}\n", section(found, command)), encoding="utf-8")
