"""The scorer's results as rows of words, for a terminal and for a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from collshim.conformance.faults.program import place
from collshim.conformance.faults.rank import OURS, is_judged
from collshim.conformance.faults.scorer import DEADLINE, Result, reached, tally
from collshim.conformance.faults.verdict import SLACK
from collshim.conformance.reporting.markdown import Row
from collshim.conformance.reporting.terminal import print_table

NOT_THERE = "·"

_LONG = 300
"""The number of characters after which a line about a miss is cut; ``--texts`` prints all."""


def show(results: Sequence[Result], faces: Sequence[str]) -> None:
    """Print both tables, the misses, and the line of counts."""
    print_table(("", *faces), fault_rows(results, faces))
    print_table(("", *faces), count_rows(results, faces))
    for line in [*misses(results), summary(results, faces)]:
        print(line)


def fault_rows(results: Sequence[Result], faces: Sequence[str]) -> list[Row]:
    """Return a row per program, under a row with only its class; a column per way of running."""
    results_by_cell = {(result.program.name, result.face): result for result in results}
    programs = sorted({result.program for result in results}, key=place)
    rows: list[Row] = []
    for (fault, beyond), members in groupby(programs, lambda program: (program.fault, bool(program.limit))):
        rows.append((f"{fault}, beyond any check" if beyond else fault,))
        for program in members:
            cells = [results_by_cell.get((program.name, face)) for face in faces]
            rows.append((program.name, *(NOT_THERE if cell is None else _cell(cell) for cell in cells)))
    return rows


def _cell(result: Result) -> str:
    alarm = "; twin fails" if result.alarm else ""
    return f"{'✓' if result.caught else '✗'} {_text(result)}{alarm}"


def _text(result: Result) -> str:
    score = result.score
    if score.seconds is None:
        return score.outcome
    lacks = "" if result.caught else ", no rank" if not score.named else ", no line" if not score.line else ", late"
    return f"{score.seconds:.2f} s{lacks}"


def count_rows(results: Sequence[Result], faces: Sequence[str]) -> list[Row]:
    """Return a row per count, a column per way of running."""
    tallies = [tally(results, face) for face in faces]
    return [
        ("fault detected", *(f"{counts.detected} of {counts.programs}" for counts in tallies)),
        ("right ranks named", *(f"{counts.named} of {counts.programs}" for counts in tallies)),
        ("right line shown", *(f"{counts.shown} of {counts.programs}" for counts in tallies)),
        ("... in the error's text", *(f"{counts.in_text} of {counts.programs}" for counts in tallies)),
        ("every rank had an error after at most", *(f"{counts.slowest:.2f} s" for counts in tallies)),
        ("false alarms", *(f"{counts.alarms}" for counts in tallies)),
        ("ranks killed by a signal", *(f"{counts.killed}" for counts in tallies)),
        ("classes caught", *(f"{counts.caught} of {counts.classes}" for counts in tallies)),
    ]


def summary(results: Sequence[Result], faces: Sequence[str]) -> str:
    """Return one line on what collshim, or the module under test, achieved."""
    judged = [face for face in faces if is_judged(face)]
    if not judged:
        return f"{len(results)} runs, all of torch itself"
    counts = [(face, tally(results, face)) for face in judged]
    classes = ", ".join(
        f"{count.caught} of {count.classes} {'between' if face in OURS else 'by'} {face}" for face, count in counts
    )
    alarms, killed = (sum(getattr(count, name) for _, count in counts) for name in ("alarms", "killed"))
    slowest = max(count.slowest for _, count in counts)
    word = "reached" if reached(results, faces) else "missed"
    return (
        f"goal {word}: classes caught {classes}; {alarms} false alarms, {killed} ranks killed by a signal, "
        f"every rank had an error after {slowest:.2f} s at most (deadline {DEADLINE:g} s, limit {DEADLINE + SLACK:g} s)"
    )


def misses(results: Sequence[Result]) -> Iterator[str]:
    """Yield the misses, each with the error that was raised instead."""
    for result in results:
        is_fair = result.caught or (result.program.limit and not result.score.killed)
        if is_judged(result.face) and not (is_fair and not result.alarm):
            yield _cut(f"missed: {result.program.name}, {result.face}: {_text(result)}: {result.score.headline}")
            if result.alarm:
                yield _cut(f"  its twin: {result.alarm}")


def _cut(line: str) -> str:
    return line if len(line) <= _LONG else f"{line[:_LONG]} ..."


def record(result: Result) -> dict[str, object]:
    """Return the result of a program as plain data."""
    score = result.score
    return {
        "program": result.program.name,
        "class": result.program.fault,
        "limit": result.program.limit,
        "face": result.face,
        "caught": result.caught,
        "outcome": score.outcome,
        "named": score.named,
        "line": score.line,
        "seconds": score.seconds,
        "killed": score.killed,
        "twin": result.alarm,
        "texts": dict(score.texts),
    }
