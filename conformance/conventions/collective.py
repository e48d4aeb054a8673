"""``docs/differences/<collective>.md``: one collective in every framework."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from collshim.conformance.conventions.called import watched
from collshim.conformance.conventions.evidence import of_paths
from collshim.conformance.conventions.example import outcome
from collshim.conformance.conventions.facts import Facts
from collshim.conformance.conventions.sheets import Sheet
from collshim.conformance.conventions.side_by_side import NOTHING, calls, compared, spellings
from collshim.conformance.reporting.markdown import bullets, table
from collshim.frameworks import FRAMEWORKS

SHOWN = 4  # the number of recorded calls that are named
TITLES = {
    "ring": "send and recv",
    "all_gather_object": "all_gather of objects",
    "gather_object": "gather of objects",
    "broadcast_object": "broadcast of objects",
    "scatter_object": "scatter of objects",
    "ring_object": "send and recv of objects",
}


def page(sheet: Sheet) -> str:
    """Return the page's text."""
    parts = [
        f"# {sheet.title or sheet.name}\n\n{sheet.says}\n\n",
        *(_side_by_side(sheet, name) for name in sheet.collectives),
    ]
    return "".join(parts + [_section(sheet, framework) for framework in FRAMEWORKS if _speaks(sheet, framework)])


def _side_by_side(sheet: Sheet, collective: str) -> str:
    several = len(sheet.collectives) > 1
    heading = f"## {TITLES[collective]}\n\n" if several else "## Side by side\n\n"
    shown = "[How to read the tables.](../conventions.md#how-to-read-the-tables)\n\n"
    return f"{heading}{calls(collective)}\n{compared(collective)}\n{'' if several else shown}"


def _speaks(sheet: Sheet, framework: str) -> bool:
    return framework in sheet.notes or any(one.framework == framework for one in _all(sheet))


def _section(sheet: Sheet, framework: str) -> str:
    """Return the section of one framework: its example, notes for its users, all its spellings, and their evidence."""
    own = [one for one in _all(sheet) if one.framework == framework]
    parts = [f"## {FRAMEWORKS[framework].title}\n"]
    if framework in sheet.examples:
        code = sheet.examples[framework]
        parts += [f"```python\n{code}```\n", outcome(framework, code)]
    if framework in sheet.notes:
        parts.append(bullets(sheet.notes[framework]))
    return "\n".join(parts + (_all_spellings(framework, own) if own else [])) + "\n"


def _all_spellings(framework: str, own: Sequence[Facts]) -> list[str]:
    rows = list(dict.fromkeys(tuple(_row(framework, one)) for one in own if not one.missing))
    parts = []
    if len(rows) > 1:
        parts += [f"All spellings, by their names in `{FRAMEWORKS[framework].functions}`:\n", _without_blanks(rows)]
    missing = list(dict.fromkeys(f"`{_short(framework, one.call)}`" for one in own if one.missing))
    if missing:
        parts.append(f"Not in collshim yet: {', '.join(missing)}.\n")
    return parts + _evidence(framework, own)


_COLUMNS = ("call", "returns", "the result is", "gradient", "recorded")


def _row(framework: str, one: Facts) -> list[str]:
    shape = one.rows.get("its shape")
    place = one.rows.get("the result is", NOTHING) + (f": {shape}" if shape else "")
    gradient = one.rows.get("gradient") or NOTHING
    return [f"`{_short(framework, one.call)}`", one.rows["returns"], place, gradient, str(one.evidence.calls)]


def _without_blanks(rows: Sequence[Sequence[str]]) -> str:
    """Return the table of spellings without empty columns."""
    kept = [place for place in range(len(_COLUMNS)) if any(row[place] != NOTHING for row in rows)]
    return table([_COLUMNS[place] for place in kept], [[row[place] for place in kept] for row in rows])


def _short(framework: str, call: str) -> str:
    return call.removeprefix(f"{FRAMEWORKS[framework].functions}.")


def _evidence(framework: str, own: Sequence[Facts]) -> list[str]:
    total = of_paths(framework, *_paths(own))
    parts = [f"Evidence, from {FRAMEWORKS[framework].title} {total.version}: {total.sentence}\n"]
    if total.deviations:
        parts.append(f"Deliberate differences of collshim from the recorded {FRAMEWORKS[framework].title}:\n")
        parts.append(bullets([_reason(reason, names) for reason, names in total.deviations.items()]))
    return parts


def _reason(reason: str, names: Sequence[str]) -> str:
    """Return a reason followed by the names of the first calls."""
    shown = [f"*{name}*" for name in dict.fromkeys(names)]
    more = f" and {len(shown) - SHOWN} more" if len(shown) > SHOWN else ""
    return f"{reason} ({', '.join(shown[:SHOWN])}{more})"


def _paths(own: Iterable[Facts]) -> list[str]:
    return list(dict.fromkeys(path for one in own for path in watched(one.binding)))


def _all(sheet: Sheet) -> list[Facts]:
    return [one for collective in sheet.collectives for one in spellings(collective)]
