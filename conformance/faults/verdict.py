"""The score of a run: whether the fault was detected, the right ranks named and the right line shown, and how soon.

The library cannot always know which rank is wrong, so a score counts what helps a reader find out:

- *detected*: the library raised an error on every rank that must report one; none continued with the data that it
  had, hung, or was ended by a signal;
- *named*: the error's text on each of them that is not itself to blame names every rank that is;
- *line*: "text" if an error's text shows file and line of every wrong call; "traceback" if only the traceback of a
  blamed rank does, and the ranks are named, so that a reader knows which traceback to open.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping, Set
from dataclasses import dataclass

from collshim.conformance.faults.job import Run
from collshim.conformance.faults.program import SIZE, Program

SLACK = 1.0
"""Seconds after the deadline by which every rank must have its error."""

_RANKS = re.compile(r"\branks?[ :]*\[?(\d+(?:(?:, | and |,)\d+)*)", re.IGNORECASE)


@dataclass(frozen=True)
class Score:
    """The score of one fault in one way of running it.

    Attributes:
        outcome: "told" if the library reported the fault, or what happened instead: "silent", "hang", "SIGABRT", ...
        named: whether the right ranks were named.
        line: "text", "traceback", or "" if the wrong line was not shown.
        seconds: the time until every rank had its error; None if some did not.
        killed: the number of ranks' processes that a signal ended, except those that ended themselves.
        texts: each rank's error text, preceded by the class of the error.
    """

    outcome: str
    named: bool
    line: str
    seconds: float | None
    killed: int
    texts: Mapping[int, str]

    @property
    def headline(self) -> str:
        """The first line of the first rank's error."""
        return self.texts[min(self.texts)].partition("\n")[0] if self.texts else "no rank raised an error"

    @property
    def detected(self) -> bool:
        """Whether the library raised an error on every rank that must report one."""
        return self.outcome == "told"

    def caught(self, deadline: float) -> bool:
        """Return whether the error contains all that a user needs."""
        in_time = self.seconds is not None and self.seconds <= deadline + SLACK
        return self.detected and self.named and bool(self.line) and in_time and not self.killed


def judge(program: Program, run: Run) -> Score:
    """Score how a fault ended."""
    outcome = _outcome(program, run)
    errors = {rank: ending for rank, ending in run.endings.items() if ending.is_reported}
    innocent_ranks = program.affected - program.blame
    named = outcome == "told" and all(program.blame <= ranks_named(errors[rank].text) for rank in innocent_ranks)
    seconds = _seconds(program, run) if outcome == "told" else None
    texts = {rank: f"{ending.error}: {ending.text}" for rank, ending in sorted(errors.items())}
    return Score(outcome, named, _line(program, run, named), seconds, len(_killed(program, run)), texts)


def passed(run: Run) -> bool:
    """Return whether a twin succeeded on every rank."""
    endings = [ending for ending in run.endings.values() if not ending.error]
    return len(endings) == SIZE and not run.signals and not run.lingering


def why_not(run: Run) -> str:
    """Return why a twin did not succeed."""
    for rank, ending in sorted(run.endings.items()):
        if ending.error:
            return f"rank {rank}: {ending.error}: {ending.text}"
    signals = ", ".join(f"rank {rank}: {_signal(number)}" for rank, number in run.signals.items())
    return signals or f"ended on ranks {sorted(run.endings)}, lingering {sorted(run.lingering)}"


def ranks_named(text: str) -> set[int]:
    """Return the ranks that a text names, as in "rank 1", "Ranks 1, 2" and "ranks [0, 1]"."""
    return {int(number) for match in _RANKS.finditer(text) for number in re.findall(r"\d+", match[1])}


def _outcome(program: Program, run: Run) -> str:
    killed = _killed(program, run)
    if killed:
        return ", ".join(sorted({_signal(run.signals[rank]) for rank in killed}))
    missing = [rank for rank in program.affected if rank not in run.endings]
    if missing:
        return "hang"
    if run.lingering:
        return "told, never ends"
    return "told" if all(run.endings[rank].is_reported for rank in program.affected) else "silent"


def _killed(program: Program, run: Run) -> Set[int]:
    return run.signals.keys() - program.dead


def _seconds(program: Program, run: Run) -> float:
    start = max(ending.started for ending in run.endings.values())
    return max(0.0, max(run.endings[rank].ended for rank in program.affected) - start)


def _line(program: Program, run: Run, named: bool) -> str:
    texts = "\n".join(ending.text for ending in run.endings.values() if ending.is_reported)
    if all(re.search(rf"\b{re.escape(program.file)}:{line}\b", texts) for line in program.lines):
        return "text"
    lines_of_tracebacks = {line for rank in program.blame & run.endings.keys() for line in run.endings[rank].lines}
    return "traceback" if named and lines_of_tracebacks >= set(program.lines) else ""


def _signal(number: int) -> str:
    return signal.Signals(number).name
