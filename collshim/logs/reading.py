"""Reads the files of a folder, and sorts what the ranks did by run, group and call."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch

from collshim.calls.call import Call
from collshim.calls.collective import COLLECTIVES
from collshim.errors import ArgumentValueError
from collshim.logs.files import SUFFIX

_SHAPES = ("sends", "expects")
_ENDS = ("done", "failed", "refused", "freed")


@dataclass
class LoggedCall:
    """What one rank's log says of one call.

    Attributes:
        rank: the rank in the world; ``group``: the group's key.
        kind, number: "call" or "message", and its number among these in the group, on this rank.
        call: the call, with its line; ``nbytes``: its bytes, None if the rank did not know them.
        time: when it was posted, in seconds since 1970.
        order: the place of the post in the rank's file.
        state: "done", "failed", "refused", "freed"; or "waiting" if it is the rank's last call, else "posted".
        seconds: the duration, once it is done or has failed; ``error``: the failure.
        source: the rank in the group that a recv was served by; None if unknown.
    """

    rank: int
    group: str
    kind: str
    number: int
    call: Call
    nbytes: int | None
    time: float
    order: int
    state: str = "posted"
    seconds: float | None = None
    error: str = ""
    source: int | None = None


class LoggedGroup(NamedTuple):
    """A group: its name in error texts, and its ranks in the world."""

    name: str
    ranks: tuple[int, ...]


@dataclass
class LoggedRun:
    """All that the files say of one world.

    Attributes:
        start: when its first rank came, in seconds since 1970.
        size: the number of ranks; ``command``: the program's arguments.
        logged: the ranks that have a file.
        groups: the groups by key, in the order in which they were made.
        steps: every rank's calls in each group, in the order of the posts.
    """

    start: float
    size: int
    command: Sequence[str]
    logged: set[int] = field(default_factory=set)
    groups: dict[str, LoggedGroup] = field(default_factory=dict)
    steps: dict[tuple[str, int], list[LoggedCall]] = field(default_factory=dict)

    def steps_of(self, rank: int) -> list[LoggedCall]:
        """Return a rank's calls in all groups, in the order of the posts."""
        found = (step for (_, owner), steps in self.steps.items() if owner == rank for step in steps)
        return sorted(found, key=lambda step: step.order)


def read(folder: Path) -> list[LoggedRun]:
    """Return the runs that left files in a folder, the earliest first.

    Raises:
        ArgumentValueError: there is no such folder, or it has no logs.
    """
    if not folder.is_dir():
        raise ArgumentValueError(f"there is no folder {folder}")
    runs = dict[str, LoggedRun]()
    for path in sorted(folder.glob(f"rank*{SUFFIX}")):
        _read_file(path, runs)
    if not runs:
        raise ArgumentValueError(
            f"no rank has left a log in {folder}: run the program with COLLSHIM_LOG_DIR={folder} first"
        )
    return sorted(runs.values(), key=lambda run: run.start)


def _read_file(path: Path, runs: dict[str, LoggedRun]) -> None:
    ranks = dict[str, int]()
    posted = dict[tuple[str, str, str, int], LoggedCall]()
    latest = dict[str, LoggedCall]()
    for order, record in enumerate(_records(path)):
        event, key = record["event"], record["run"]
        if event == "world":
            run = runs.setdefault(key, LoggedRun(record["time"], record["size"], record["command"]))
            run.start = min(run.start, record["time"])
            ranks[key] = record["rank"]
            run.logged.add(record["rank"])
        elif event == "group":
            runs[key].groups.setdefault(record["group"], LoggedGroup(record["name"], tuple(record["ranks"])))
        else:
            kind = "call" if "call" in record else "message"
            place = (key, record["group"], kind, record[kind])
            if event == "posted":
                posted[place] = latest[key] = _step(record, kind, ranks[key], order)
                _add(runs[key], posted[place])
            elif event in _ENDS:
                _end(posted[place], record)
    for step in latest.values():
        step.state = "waiting" if step.state == "posted" else step.state


def _add(run: LoggedRun, step: LoggedCall) -> None:
    """Add a step; it replaces a refused one, whose number it has."""
    steps = run.steps.setdefault((step.group, step.rank), [])
    if steps and steps[-1].state == "refused" and (steps[-1].kind, steps[-1].number) == (step.kind, step.number):
        steps.pop()
    steps.append(step)


def _end(step: LoggedCall, record: dict[str, Any]) -> None:
    step.state = record["event"]
    step.seconds, step.error, step.source = record.get("seconds"), record.get("error", ""), record.get("source")


def _records(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a file; a process that was killed may have written half of the last."""
    for line in path.read_bytes().splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            return


def _step(record: dict[str, Any], kind: str, rank: int, order: int) -> LoggedCall:
    call = call_of(record)
    return LoggedCall(rank, record["group"], kind, record[kind], call, record.get("bytes"), record["time"], order)


def call_of(record: dict[str, Any]) -> Call:
    """Return the call that a record describes: the reverse of ``observer.facts_of``."""
    facts = {name: record[name] for name in Call._field_defaults if name in record}
    if "shape" in facts:
        facts["shape"] = tuple(facts["shape"])
    facts |= {name: tuple(map(tuple, facts[name])) for name in _SHAPES if name in facts}
    if "dtype" in facts:
        facts["dtype"] = getattr(torch, facts["dtype"])
    return Call(COLLECTIVES[record["op"]], **facts)
