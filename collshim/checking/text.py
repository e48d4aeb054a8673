"""A report as text, and as JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from collshim.checking.mistakes import RULES, Mistake
from collshim.checking.names import Standing, Use
from collshim.checking.report import Report
from collshim.frameworks import FRAMEWORKS

_MOST_PLACES = 4
_INDENT, _DEEPER = 2, 6


def show(report: Report, console: Console, *, everything: bool = False) -> None:
    """Print a report: missing names, names with differences, mistakes, and the recommended way."""
    _put(console, f"[bold]{escape(summary(report))}[/bold]")
    for unread in report.unreadable:
        console.print(f"  {escape(short(unread.path))}:{unread.line}  {escape(unread.reason)}", highlight=False)
    listed: tuple[Standing, ...] = ("missing", "different", "supported") if everything else ("missing", "different")
    for standing in listed:
        if names := report.names(standing):
            console.print(f"\n[bold]{standing}[/bold]")
            _show_names(names, console)
    if not everything and (names := report.names("supported")):
        console.print("\n[bold]supported[/bold]")
        _put(console, f"[dim]{escape(', '.join(names))}[/dim]", _INDENT)
    if report.mistakes:
        console.print("\n[bold]mistakes[/bold]")
    for mistake in report.mistakes:
        _show_mistake(mistake, console)
    ways = report.ways()
    for framework, way in ways.items():
        title = f" for {FRAMEWORKS[framework].title}" if len(ways) > 1 else ""
        _put(console, f"\n[bold]Recommended{title}: {way.kind}.[/bold] {escape(_sentence(way.text))}")


def _put(console: Console, markup: str, indent: int = 0) -> None:
    """Print a paragraph, indented, without spaces at the ends of its lines."""
    for line in Text.from_markup(markup).wrap(console, console.width - indent):
        line.rstrip()
        console.print(Text(" " * indent).append_text(line), highlight=False, soft_wrap=True)


def summary(report: Report) -> str:
    """Return the first line: the numbers of files, names and mistakes."""
    standings: tuple[Standing, ...] = ("supported", "different", "missing")
    counts = [f"{len(report.names(one))} {one}" for one in standings]
    titles = " and ".join(FRAMEWORKS[one].title for one in report.frameworks) or "no framework that collshim supports"
    files = _number(report.files, "file")
    unreadable = f", {_number(len(report.unreadable), 'file')} not readable" if report.unreadable else ""
    return f"{files}, {titles}: names {', '.join(counts)}; {_number(len(report.mistakes), 'mistake')}{unreadable}"


def _show_names(names: dict[str, list[Use]], console: Console) -> None:
    for name, uses in names.items():
        note = uses[0].note + (f" ({uses[0].page})" if uses[0].page else "")
        _put(console, f"{escape(name)}  {escape(note)}".rstrip(), _INDENT)
        _put(console, f"[dim]{escape(_places(uses))}[/dim]", _DEEPER)


def _places(uses: Sequence[Use]) -> str:
    places = list(dict.fromkeys(f"{short(use.path)}:{use.line}" for use in uses))
    more = f" +{len(places) - _MOST_PLACES}" if len(places) > _MOST_PLACES else ""
    return " ".join(places[:_MOST_PLACES]) + more


def _show_mistake(mistake: Mistake, console: Console) -> None:
    place = f"{short(mistake.path)}:{mistake.line}"
    text = f"[red]{mistake.rule}[/red]  {escape(place)}  {escape(mistake.text)}"
    _put(console, text, _INDENT)
    line = mistake.path.read_text(errors="replace").splitlines()[mistake.line - 1].strip()
    _put(console, f"[dim]{escape(line)}[/dim]", _DEEPER)
    _put(console, f"Fix: {escape(mistake.fix)}", _DEEPER)


def short(path: Path) -> str:
    """Return a path relative to the working directory, if it is below it."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


def _number(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def as_json(report: Report) -> str:
    """Return a report as JSON."""
    facts: dict[str, Any] = {
        "scripts": list(map(str, report.scripts)),
        "code": report.code,
        "files": report.files,
        "unreadable": [asdict(one) for one in report.unreadable],
        "names": [asdict(use) for use in report.uses],
        "mistakes": [asdict(one) for one in report.mistakes],
        "rules": RULES,
        "fits": {framework: asdict(way) for framework, way in report.ways().items()},
    }
    return json.dumps(facts, indent=2, default=str)
