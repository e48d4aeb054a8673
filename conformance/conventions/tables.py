"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Sequence


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table, with the line break at its end."""
    lines = [titles, ["---"] * len(titles), *rows]
    return "".join(f"| {' | '.join(_cell(text) for text in line)} |\n" for line in lines).replace("|  |", "| |")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def bullets(texts: Sequence[str]) -> str:
    """A list, with the line break at its end."""
    return "".join(f"- {text}\n" for text in texts)
