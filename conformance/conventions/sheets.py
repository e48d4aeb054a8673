"""The subjects of the pages of ``docs/differences/``; examples and notes belong to the spellings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from collshim.conformance.bindings import bindings
from collshim.conformance.bindings.binding import Binding
from collshim.frameworks import FRAMEWORKS


@dataclass(frozen=True)
class Sheet:
    """One page.

    Attributes:
        name: the name of the page's file.
        collectives: the collectives that the page describes, by the suite's names.
        says: what the collective does, in a sentence or two.
        title: the title of the page, if it is not its name.
        lacking: a note for each framework that has none of these collectives.
    """

    name: str
    collectives: tuple[str, ...]
    says: str
    title: str = ""
    lacking: Mapping[str, str] = field(default_factory=dict)

    @property
    def examples(self) -> dict[str, str]:
        """The examples by framework, for frameworks that have one."""
        return {one.framework.name: one.example for one in self._representatives() if one.example}

    @property
    def notes(self) -> dict[str, tuple[str, ...]]:
        """The notes by framework, for users who leave it or move to it."""
        notes = {one.framework.name: one.notes for one in self._representatives() if one.notes}
        notes |= {framework: (note,) for framework, note in self.lacking.items()}
        return {framework: notes[framework] for framework in FRAMEWORKS if framework in notes}

    def _representatives(self) -> list[Binding]:
        """Return the first spelling of each framework that has an example or notes; others are forms of it."""
        spellings = [one for one in bindings() if one.collective in self.collectives and (one.example or one.notes)]
        return list({one.framework.name: one for one in reversed(spellings)}.values())[::-1]


_SHEETS = (
    Sheet(
        "all_reduce",
        ("all_reduce",),
        "Every rank passes a tensor; every rank receives their sum, maximum, minimum, mean or another reduction.",
    ),
    Sheet(
        "reduce",
        ("reduce",),
        "Every rank passes a tensor; one rank, the root, receives their sum, maximum, minimum or another reduction.",
    ),
    Sheet(
        "reduce_scatter",
        ("reduce_scatter",),
        "Every rank passes one part for each rank; rank `r` receives the sum or another reduction of the `r`-th parts.",
    ),
    Sheet("broadcast", ("broadcast",), "One rank, the root, passes a tensor; every rank receives it."),
    Sheet(
        "all_gather",
        ("all_gather",),
        "Every rank passes a tensor; every rank receives all of them, in the order of the ranks.",
    ),
    Sheet(
        "gather",
        ("gather",),
        "Every rank passes a tensor; one rank, the root, receives all of them, in the order of the ranks.",
    ),
    Sheet(
        "scatter", ("scatter",), "One rank, the root, passes one part for each rank; rank `r` receives the `r`-th part."
    ),
    Sheet(
        "all_to_all",
        ("all_to_all",),
        "Every rank passes one part for each rank; rank `r` receives the `r`-th parts of all ranks, in rank order.",
    ),
    Sheet(
        "send_recv",
        ("ring",),
        "One rank sends a tensor, and a second rank receives it. All peers are global ranks.",
        "send and recv",
    ),
    Sheet(
        "objects",
        (
            "all_gather_object",
            "gather_object",
            "broadcast_object",
            "scatter_object",
            "ring_object",
        ),
        "These collectives move Python objects that can be pickled, instead of tensors. They fill lists in place.",
        "collectives of objects",
    ),
    Sheet(
        "barrier",
        ("barrier",),
        "No rank continues before every rank has called the barrier.",
        lacking={"tensorflow": "TensorFlow has no barrier: a collective among all replicas waits for them."},
    ),
)


def sheets() -> tuple[Sheet, ...]:
    """Return the sheets of all pages, in the order in which they are listed."""
    return _SHEETS
