"""Which cases are run: the corners of every spelling, dealt out over the sizes of worlds as in the suite's tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from collshim.conformance.bindings.binding import Binding
from collshim.conformance.cases import Case
from collshim.conformance.corners import corners, refusals, share
from collshim.conformance.effort import SIZES, shares
from collshim.conformance.recorder import recordings
from collshim.conformance.recorder.recordings import Recording
from collshim.conformance.report.results import OTHER
from collshim.conformance.subject import Subject

# Functions that are asked for together with the one that a binding is named for.
_COMPANIONS = {
    "irecv": "ring",
    "recv": "ring",
    "recv_object_list": "ring_object",
    "remote_recv": "ring",
    "P2POp": "ring",
}


@dataclass(frozen=True)
class Plan:
    """What is run on what.

    Attributes:
        subject: what is tested.
        transports: what its ranks are, one after the other.
        frameworks: whose dialects, of those that are spoken; all where there are none.
        collectives: which rows; all where there are none.
        sizes: of worlds; those of the suite's tests where there are none.
    """

    subject: Subject
    transports: Sequence[str]
    frameworks: Sequence[str] = ()
    collectives: Sequence[str] = ()
    sizes: Sequence[int] = ()

    def bindings(self) -> list[Binding]:
        """The spellings that are asked."""
        return [binding for binding in self._dialect_bindings() if self._is_row(binding.collective)]

    def cases(self, binding: Binding, transport: str) -> list[Case]:
        """The cases that one spelling is asked over a transport: right calls, then those that are refused."""
        sizes = [size for size in self.sizes or SIZES[transport] if size >= binding.admits.least_size]
        sizes_in_order = sorted(sizes, key=lambda size: size != 2)
        shares_of_corners = [
            share(corners(binding, size), place, shares(transport)) for place, size in enumerate(sizes_in_order)
        ]
        refused_cases = refusals(binding, 2) if 2 in sizes else []
        return [case for cases in (*shares_of_corners, refused_cases) for case in cases if self._is_admitted(case)]

    def recordings(self) -> Iterator[tuple[str, str, Recording]]:
        """The recordings that are replayed, each with its collective and its dialect; none of a foreign subject."""
        if self.subject.foreign or "threads" not in self.transports:
            return
        collectives = {binding.path: binding.collective for binding in self._dialect_bindings()}
        for framework in dict.fromkeys(binding.framework.name for binding in self._dialect_bindings()):
            for folder in recordings.folders(framework):
                for recording in recordings.read(folder):
                    collective = _collective(recording.asked.api[0], collectives)
                    if self._is_row(collective) and (not self.sizes or recording.asked.size in self.sizes):
                        yield collective, framework, recording

    def _is_admitted(self, case: Case) -> bool:
        """A real framework takes its own arrays alone."""
        return case.kind == "torch" or not self.subject.is_real

    def _is_row(self, collective: str) -> bool:
        return not self.collectives or collective in self.collectives

    def _dialect_bindings(self) -> list[Binding]:
        return [
            binding
            for binding in self.subject.bindings()
            if not self.frameworks or binding.framework.name in self.frameworks
        ]


def _collective(path: str, collectives: dict[str, str]) -> str:
    return collectives.get(path) or _COMPANIONS.get(path.rpartition(".")[2], OTHER)
