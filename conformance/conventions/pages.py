"""Every page made by this package, by its path from the root of the repository."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from collshim.conformance.conventions import collective, overview, pair
from collshim.conformance.conventions.sheets import sheets

FOLDER = "docs/differences"


def pages() -> dict[str, Callable[[], str]]:
    """Return the function that makes each page's text."""
    collectives = {f"{FOLDER}/{sheet.name}.md": partial(collective.page, sheet) for sheet in sheets()}
    pairs = {f"{FOLDER}/{pair.name(one)}.md": partial(pair.page, one) for one in pair.PAIRS}
    heads = {"docs/conventions.md": overview.conventions_page, f"{FOLDER}/index.md": overview.index_page}
    return {**heads, **collectives, **pairs}
