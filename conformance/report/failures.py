"""The failures of a run as lines of text: an example of each function, then each cause."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from textwrap import wrap

from collshim.conformance.report.causes import FORM, VALUES, Cause, Failure, causes, lines, path, simplest
from collshim.conformance.report.results import DEVIATION, FAIL, Grid

FUNCTIONS, CASES = ("functions", "cases")
"""What to list: an example of each function and each cause, or also all failed cases."""

_CHARACTERS = 400  # of one difference
_RANK = re.compile(r"\brank (\d+)")
_EXCERPT = re.compile(r"^(.+?): expected (.+), got (.+?)( \(rank \d+ of \d+\))?$")


def sentence(grid: Grid) -> str:
    """Return the outcome of the run in one sentence."""
    name = grid.about.get("subject", "the run")
    if grid.failed:
        names = {path(function) for function, _ in grid.failed}
        wrong = {path(one.function) for cause in causes(grid) if cause.kind in (VALUES, FORM) for one in cause.failures}
        every = "" if len(wrong) == len(names) else f" {len(wrong)} of them"
        of_these = f",{every} with wrong results" if wrong else ", none with wrong results"
        differ = f"{len(grid.failed):,} of {number(grid.asked, 'case')} of {name} differ"
        return f"Failed: {differ}, in {number(len(names), 'function')}{of_these}."
    if grid.stale:
        return f"Failed: {number(len(grid.stale), 'unexpected pass', 'es')} of {name}."
    results = (result for function in grid.functions for result in (*function.cases, *function.recorded))
    known = sum(result.outcome == DEVIATION for result in results)
    return f"Passed: no case of {name} differs" + (f", but for {number(known, 'known deviation')}." if known else ".")


def failures(grid: Grid, width: int = 100, show: str = FUNCTIONS) -> Iterator[str]:
    """Yield unexpected passes, an example of each failed function, and the causes."""
    for line in grid.stale:
        yield f"unexpected pass: {line}"
    found = causes(grid)
    for several in _by_function(found):
        yield from _example(grid, several, width)
    if found:
        yield ""
        hint = (
            ""
            if show == CASES
            else "; `--show cases` lists them all, and with `--read FILE` those of a file of `--json`"
        )
        yield from wrap(f"{number(len(found), 'cause')} of {number(len(grid.failed), 'failed case')}{hint}:", width)
    for cause in found:
        yield from _cause(cause, width)
        if show == CASES:
            yield from (f"    {failure.function.name}: {failure.result.case}" for failure in cause.failures)


def number(count: int, noun: str, plural: str = "s") -> str:
    """Return the count with its noun: "1 case", "1,665 cases"."""
    return f"{count:,} {noun}{'' if count == 1 else plural}"


def laid_out(line: str) -> Iterator[str]:
    """Yield the line of a difference, with the expected numbers of an array above the actual ones."""
    split = _EXCERPT.match(line)
    yield _cut(split[1] if split else line)
    if split:
        yield f"  expected {split[2]}"
        yield f"  got      {split[3]}"


def _by_function(found: Sequence[Cause]) -> list[list[Failure]]:
    """Return the failures of each path by its most important cause, the most important causes first."""
    by_path: dict[str, list[Failure]] = {}
    of_path: dict[str, Cause] = {}
    for cause in found:
        for failure in cause.failures:
            name = path(failure.function)
            if of_path.setdefault(name, cause) is cause:
                by_path.setdefault(name, []).append(failure)
    return list(by_path.values())


def _example(grid: Grid, several: Sequence[Failure], width: int) -> Iterator[str]:
    """Yield a case, as ``--case`` and ``--xfails-file`` take it, and its first difference."""
    function, result, line = simplest(several)[0]
    yield f"failed: {function.name}: {result.case}"
    yield from (f"  {text}" for text in laid_out(line))
    every = lines(result)
    ranks = list(dict.fromkeys(found[1] for one in every if (found := _RANK.search(one))))
    on = f", only on rank {ranks[0]}" if len(ranks) == 1 else f", on ranks {', '.join(ranks)}"
    yield f"  {number(len(every), 'difference')} in this case{on if ranks else ''}"
    yield from _wrapped(", ".join(_counted(grid, path(function))), width, "  ")


def _counted(grid: Grid, name: str) -> Iterator[str]:
    """Yield the number of failed cases of each form of the function."""
    by_form: dict[str, Counter[str]] = {}
    for function in grid.functions:
        if path(function) == name:
            form = by_form.setdefault(function.name.removeprefix(name), Counter())
            form.update(result.outcome for result in (*function.cases, *function.recorded))
    failed = sorted(brackets for brackets, outcomes in by_form.items() if outcomes[FAIL])
    for place, brackets in enumerate(failed):
        numbers = f"{by_form[brackets][FAIL]:,} of {by_form[brackets].total():,}"
        what = f" of its form {brackets}" if brackets else ""
        yield f"{numbers}{what}" if place else f"{numbers} cases{what} failed"


def _cause(cause: Cause, width: int) -> Iterator[str]:
    """Yield the cause, the number of cases and their functions, and a case unless the function's example is one."""
    count = number(len(cause.failures), "case")
    is_named = cause.kind == VALUES and cause.functions == [path(cause.failures[0].function)]
    names = "" if is_named else f" of {named(cause.functions)}"
    only = f"; only with {cause.only}" if cause.only else ""
    yield from _wrapped(f"- {_cut(cause.text)}: {count}{names}{only}", width, "")
    if cause.kind != VALUES:
        yield f"    {cause.failures[0].function.name}: {cause.failures[0].result.case}"


def named(functions: Sequence[str]) -> str:
    """Join the names of functions; of a function's further forms, only the brackets."""
    by_path: dict[str, list[str]] = {}
    for name in functions:
        by_path.setdefault(name.partition("[")[0], []).append(name)
    shown = [[first, *(name.removeprefix(path) for name in more)] for path, (first, *more) in by_path.items()]
    return ", ".join(name for names in shown for name in names)


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    more = f"{indent}    "
    return wrap(
        text, width, initial_indent=indent, subsequent_indent=more, break_long_words=False, break_on_hyphens=False
    )


def _cut(text: str) -> str:
    return text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS]} ..."
