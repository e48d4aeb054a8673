"""``docs/differences/<one>-<other>.md``: the changes from one framework to another, either way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from collshim.conformance.conventions.collective import TITLES
from collshim.conformance.conventions.facts import Facts
from collshim.conformance.conventions.groups import shared
from collshim.conformance.conventions.sheets import Sheet, sheets
from collshim.conformance.conventions.side_by_side import NOTHING, first, subjects
from collshim.conformance.reporting.markdown import bullets, table
from collshim.frameworks import FRAMEWORKS

Pair = tuple[str, str]
EVERYWHERE = ("groups", "asynchronous", "error for a non-tensor")  # stated once for all collectives
PAIRS: tuple[Pair, ...] = tuple(combinations(FRAMEWORKS, 2))


def name(pair: Pair) -> str:
    """Return the page's name."""
    return "-".join(pair)


def title(pair: Pair) -> str:
    """Return the page's title."""
    return " and ".join(FRAMEWORKS[framework].title for framework in pair)


def page(pair: Pair) -> str:
    """Return the page's text."""
    head = (
        f"# {title(pair)}\n\nThis page shows what changes if you move a program from one framework to the other, in "
        "either direction. What a table does not mention is the same in both. "
        "[How to read the tables.](../conventions.md#how-to-read-the-tables)\n"
    )
    collectives = [(sheet, collective) for sheet in sheets() for collective in sheet.collectives]
    both = [one for one in collectives if set(pair) <= first(one[1]).keys()]
    sections = [_section(pair, *one) for one in both]
    return "\n".join([head, _start(pair), shared(pair), _everywhere(pair, both), *sections, *_alone(pair, collectives)])


def _start(pair: Pair) -> str:
    blocks = [f"{FRAMEWORKS[framework].title}:\n\n```python\n{FRAMEWORKS[framework].start}```\n" for framework in pair]
    return "## Start\n\n" + "\n".join(blocks)


def _everywhere(pair: Pair, both: Sequence[tuple[Sheet, str]]) -> str:
    """Return the section that applies to all collectives."""
    every = [[first(collective)[framework] for _, collective in both] for framework in pair]
    rows = [
        ["*asynchronous*", *(_asynchronous(own) for own in every)],
        ["*error for a non-tensor*", *(_refusals(own) for own in every)],
    ]
    return f"## In every call\n\n{table(['', *(FRAMEWORKS[framework].title for framework in pair)], rows)}"


def _asynchronous(own: Sequence[Facts]) -> str:
    names = [one.binding.collective for one in own if one.rows["asynchronous"] == "`async_op=True`"]
    return f"`async_op=True` of {', '.join(names)}" if names else NOTHING


def _refusals(own: Sequence[Facts]) -> str:
    return ", ".join(dict.fromkeys(filter(None, (one.rows.get("error for a non-tensor") for one in own)))) or NOTHING


def _section(pair: Pair, sheet: Sheet, collective: str) -> str:
    every = [first(collective)[framework] for framework in pair]
    blocks = [_code(sheet, collective, one) for one in every]
    rows = [[f"*{subject}*", *(one.rows[subject] for one in every)] for subject in _differences(every)]
    titles = [FRAMEWORKS[framework].title for framework in pair]
    differences = table(["", *titles], rows) if rows else "The same, except for the names.\n"
    notes = [f"{FRAMEWORKS[framework].title}: {note}" for framework in pair for note in sheet.notes.get(framework, ())]
    seen = f"More: [{sheet.title or sheet.name}]({sheet.name}.md).\n"
    return "\n".join(
        [f"## {TITLES.get(collective, collective)}\n", *blocks, differences, *([bullets(notes)] if notes else []), seen]
    )


def _code(sheet: Sheet, collective: str, one: Facts) -> str:
    """Return the call, and the example if it belongs to this collective."""
    code = sheet.examples.get(one.framework) if collective == sheet.collectives[0] else None
    missing = ", not in collshim yet" * one.missing
    return f"{FRAMEWORKS[one.framework].title}: `{one.call}`{missing}\n" + (f"\n```python\n{code}```\n" if code else "")


def _differences(every: Sequence[Facts]) -> list[str]:
    """Return the subjects that both frameworks have, with different texts."""
    described = [subject for subject in subjects(every) if all(one.rows.get(subject) for one in every)]
    return [one for one in described if one not in EVERYWHERE and every[0].rows[one] != every[1].rows[one]]


def _alone(pair: Pair, collectives: Sequence[tuple[Sheet, str]]) -> Iterator[str]:
    lines = [
        f"only {FRAMEWORKS[framework].title}: "
        + ", ".join(
            f"[{TITLES.get(name, name)}]({sheet.name}.md)"
            for sheet, name in collectives
            if _only(name, framework, pair)
        )
        for framework in pair
        if any(_only(name, framework, pair) for _, name in collectives)
    ]
    if lines:
        yield f"## In one of them only\n\n{bullets(lines)}"


def _only(collective: str, framework: str, pair: Pair) -> bool:
    return set(pair) & first(collective).keys() == {framework}
