"""Selects cases: the corners of every spelling, distributed over the sizes of worlds as in the suite's tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from collshim.conformance.bindings.binding import Binding
from collshim.conformance.cases import Case
from collshim.conformance.corners import corners, dealt, refusals
from collshim.conformance.effort import SIZES, shares
from collshim.conformance.recorder import recordings
from collshim.conformance.recorder.recordings import Recording
from collshim.conformance.report.listed import NOTHING, Listed
from collshim.conformance.report.results import OTHER
from collshim.conformance.subject import Subject

# Functions whose binding is named after another function, and belong to that function's collective.
_COMPANIONS = {
    "irecv": "ring",
    "recv": "ring",
    "recv_object_list": "ring_object",
    "remote_recv": "ring",
    "P2POp": "ring",
}


@dataclass(frozen=True)
class Plan:
    """The selected cases and the subject.

    Attributes:
        subject: the subject of the run.
        transports: the transports, one after the other.
        frameworks: the dialects to test, among those that the subject supports; all if empty.
        collectives: the rows to run; all if empty.
        sizes: the sizes of worlds; those of the suite's tests if empty.
        kinds: the kinds of arrays; those that the subject accepts if empty.
        only: a single case, and the function to run it on; "" for all functions of its collective.
        skips: the functions and cases that are not run.
    """

    subject: Subject
    transports: Sequence[str]
    frameworks: Sequence[str] = ()
    collectives: Sequence[str] = ()
    sizes: Sequence[int] = ()
    kinds: Sequence[str] = ()
    only: tuple[str, Case] | None = None
    skips: Listed = NOTHING

    def bindings(self) -> list[Binding]:
        """Return the spellings to test."""
        return [binding for binding in self._dialect_bindings() if self._is_asked(binding)]

    def cases(self, binding: Binding, transport: str) -> list[Case]:
        """Return the cases of one spelling over a transport: valid calls, then those that are refused."""
        if self.only is not None:
            return [self.only[1]]
        sizes = [size for size in self.sizes or SIZES[transport] if size >= binding.admits.least_size]
        sizes_in_order = sorted(sizes, key=lambda size: (size != 2, size == 1))
        found = [*self._reductions(binding, sizes_in_order)]
        found += dealt(binding, sizes_in_order, min(shares(transport), max(1, len(sizes))))
        found += refusals(binding, 2) if 2 in sizes else []
        return [case for case in dict.fromkeys(found) if self.admits(binding, case)]

    def admits(self, binding: Binding, case: Case) -> bool:
        """Return whether the plan includes the case; a single selected case overrides the other options."""
        if self.only is not None:
            return case == self.only[1]
        if case.kind not in (self.kinds or self.subject.kinds) or (self.sizes and case.size not in self.sizes):
            return False
        return self.skips.entry(binding.name, case) is None

    def recordings(self) -> Iterator[tuple[str, str, Recording]]:
        """Yield the recordings to replay, each with its collective and its dialect; none for a foreign subject."""
        if self.subject.foreign or "threads" not in self.transports:
            return
        collectives = {binding.path: binding.collective for binding in self._dialect_bindings()}
        for framework in dict.fromkeys(binding.framework.name for binding in self._dialect_bindings()):
            for folder in recordings.folders(framework):
                for recording in recordings.read(folder):
                    collective = _collective(recording.asked.api[0], collectives)
                    if self._is_row(collective) and (not self.sizes or recording.asked.size in self.sizes):
                        yield collective, framework, recording

    def _reductions(self, binding: Binding, sizes: Sequence[int]) -> Iterator[Case]:
        """Yield every reduce operation at one size: at two ranks if that is among the sizes."""
        for case in corners(binding, sizes[0]) if sizes else ():
            if case.reduce_op != binding.admits.reduce_ops[0] and not case.gradient:
                yield case

    def _is_asked(self, binding: Binding) -> bool:
        if self.only is None:
            return self._is_row(binding.collective)
        function, case = self.only
        return binding.collective == case.collective and function in ("", binding.name) and _fits(binding, case)

    def _is_row(self, collective: str) -> bool:
        return not self.collectives or collective in self.collectives

    def _dialect_bindings(self) -> list[Binding]:
        return [
            binding
            for binding in self.subject.bindings()
            if not self.frameworks or binding.framework.name in self.frameworks
        ]


def _fits(binding: Binding, case: Case) -> bool:
    """Return whether the function can run this case, because its framework admits or refuses it."""
    return binding.supports(case) or binding.refusal(case) is not None


def _collective(path: str, collectives: dict[str, str]) -> str:
    return collectives.get(path) or _COMPANIONS.get(path.rpartition(".")[2], OTHER)
