"""Finds the first call at which the ranks of a run differ, and says it in a sentence."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from collshim.calls.collective import SEND
from collshim.errors import ArgumentValueError
from collshim.logs.merging import FAILED, UNFINISHED, Row, merged
from collshim.logs.reading import LoggedCall, LoggedRun

_MOST_NAMED = 3
"""The number of ranks whose last call is told."""

_DOING = {"waiting": "waits in", "failed": "failed in", "refused": "was refused"}
"""What a rank did in its last call, by its state."""

_BY_WEIGHT = (("absent", "mismatch"), ("failed",), ("unfinished",))
"""A failure, or a call that is not over, often follows from a call that a rank did not make."""


class Verdict:
    """What is wrong with a run.

    Args:
        runs: all runs of the folder; ``number``: that of the run, from 1.

    Attributes:
        run, number: the run; ``others``: how many runs there are besides it.
        rows: its rows by the group's key.
        worst: the first row where a rank is missing or the ranks differ, else the first failed, else the first
            unfinished one; None if all is well.
        sentence: what to say first.
        code: the exit code: 0, or 1 if a row has a problem.
    """

    def __init__(self, runs: Sequence[LoggedRun], number: int) -> None:
        if not 1 <= number <= len(runs):
            raise ArgumentValueError(f"--run is {number}, should be from 1 to {len(runs)}")
        self.run, self.number, self.others = runs[number - 1], number, len(runs) - 1
        self.rows = merged(self.run)
        self.worst = worst(row for rows in self.rows.values() for row in rows)
        self.code = 0 if self.worst is None else 1
        self.sentence = self._well() if self.worst is None else said(self.run, self.worst)

    def _well(self) -> str:
        counts = {len(rows) for rows in self.rows.values()}
        calls = sum(len(rows) for rows in self.rows.values())
        size, missing = self.run.size, self.run.size - len(self.run.logged)
        made = f"{number_of(size, 'rank')} made {number_of(calls, 'call')}" if counts else "no rank made a call"
        logs = f" (no log of {_ranks(rank for rank in range(size) if rank not in self.run.logged)})" if missing else ""
        return f"{made}{logs}; all are done, and the ranks agree" if counts else f"{made}{logs}"


def worst(rows: Iterable[Row]) -> Row | None:
    """Return the first row with the problem that weighs most."""
    wrong = sorted((row for row in rows if row.problem), key=lambda row: row.first.time)
    found = (row for problems in _BY_WEIGHT for row in wrong if row.problem in problems)
    return next(found, None)


def said(run: LoggedRun, row: Row) -> str:
    """Say what is wrong with a row."""
    what = name_of(row)
    if row.absent:
        return f"{_ranks(row.absent)} never made {what}; {_where(run, row)}"
    if row.mismatch:
        return f"{titled(row)}: {row.mismatch}"
    if failed := row.ranks_in(FAILED):
        first = min((row.steps[rank] for rank in failed), key=lambda step: step.time + (step.seconds or 0))
        return f"{what} {first.state} on {_ranks(failed)}: {first.error.partition(chr(10))[0]}"
    waiting = row.ranks_in(UNFINISHED)
    since = min(row.steps[rank].time for rank in waiting)
    return f"{what} is not over on {_ranks(waiting)}: posted at {clock(since)}, and no wait for it has ended"


def titled(row: Row) -> str:
    """Return the row's number, and its group if that is not the world."""
    kind = "message" if row.is_message else "call"
    return f"{kind} {row.number}" + ("" if row.group.name == "world" else f" of {row.group.name}")


def name_of(row: Row) -> str:
    """Return the row's number and its call, as its first rank made it."""
    step = row.shown
    call = f"{step.call} on rank {step.rank}" if row.is_message or len(row.ranks) > 1 else str(step.call)
    if row.is_message and row.absent:
        other = "recv" if step.call.collective is SEND else "send"
        return f"the {other} of {titled(row)} ({call})"
    return f"{titled(row)} ({call})"


def _where(run: LoggedRun, row: Row) -> str:
    """Say what the absent ranks did instead."""
    texts = [_instead(run, rank) for rank in row.absent[:_MOST_NAMED]]
    if len(row.absent) == 1:
        return f"it {texts[0]}"
    return ", ".join(f"rank {rank} {text}" for rank, text in zip(row.absent, texts, strict=False))


def _instead(run: LoggedRun, rank: int) -> str:
    steps = run.steps_of(rank)
    if not steps:
        return "made no call"
    last = steps[-1]
    doing = {"waiting": "waits in", "failed": "failed in", "refused": "was refused"}.get(
        last.state, "last returned from"
    )
    since = f", since {clock(last.time)}" if last.state in UNFINISHED else ""
    return f"{doing} {_short(run, last)}{since}"


def _short(run: LoggedRun, step: LoggedCall) -> str:
    name = run.groups[step.group].name
    where = "" if name == "world" else f" of {name}"
    return f"{step.kind} {step.number}{where} ({step.call.name}) at {step.call.site}"


def _ranks(ranks: Iterable[int]) -> str:
    """Return "rank 1", or "ranks 0, 2-5"."""
    numbers = sorted(ranks)
    return f"rank{'' if len(numbers) == 1 else 's'} {ranges(numbers)}"


def ranges(numbers: Sequence[int]) -> str:
    """Return sorted numbers, three or more in a row as a range."""
    spans = list[list[int]]()
    for number in numbers:
        if spans and number == spans[-1][-1] + 1:
            spans[-1].append(number)
        else:
            spans.append([number])
    texts = (f"{span[0]}-{span[-1]}" if len(span) > 2 else ", ".join(map(str, span)) for span in spans)
    return ", ".join(texts)


def clock(seconds: float) -> str:
    """Return a time of day, in this machine's zone."""
    return time.strftime("%H:%M:%S", time.localtime(seconds))


def number_of(count: int, noun: str) -> str:
    """Return "1 call", "2 calls"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
