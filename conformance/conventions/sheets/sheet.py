"""What a page tells that no binding knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Sheet:
    """One page.

    Attributes:
        name: of the page's file.
        collectives: the collectives that it is about, by the suite's names.
        says: what the collective does, in a sentence or two.
        examples: one for each framework that has it, or for each call worth showing.
        notes: for each framework what its user must know who leaves it or comes to it.
        title: of the page, where it is not its name.
    """

    name: str
    collectives: tuple[str, ...]
    says: str
    examples: Mapping[str, str]
    notes: Mapping[str, tuple[str, ...]]
    title: str = ""
