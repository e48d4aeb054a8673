"""The recordings of a real framework's function, and collshim's declared differences from them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache

from collshim.conformance.deviations import declared
from collshim.conformance.recorder import recordings
from collshim.conformance.recorder.recordings import Recording


@dataclass
class Evidence:
    """The recorded calls of one function.

    Attributes:
        version: the framework's version.
        calls: the number of calls; a call in worlds of three sizes counts three times.
        converted: whether they were converted from an earlier record instead of run by the recorder.
        beyond: how many the recorded backend does not support, so that collshim follows documentation and source.
        accidents: how many hung or ended the process; in collshim they raise an error or return.
        deviations: the reasons why collshim differs, each with the recorded calls.
    """

    version: str
    converted: bool = False
    calls: int = 0
    beyond: int = 0
    accidents: int = 0
    deviations: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def add(self, recording: Recording, reason: str | None) -> None:
        """Count one recording."""
        self.calls += 1
        self.beyond += any("limit" in answer for answer in recording.answers)
        self.accidents += recording.accident
        if reason is not None:
            self.deviations[reason].append(recording.asked.id.partition("/")[2])

    @property
    def short(self) -> str:
        """The version and the number of calls: ``2.13.0: 73``."""
        return f"{self.version}: {self.calls or 'none'}{' converted' * (self.converted and self.calls > 0)}"

    @property
    def sentence(self) -> str:
        """The number of calls, and how collshim treats those that cannot simply be compared."""
        if not self.calls:
            return "no recorded call; collshim follows the documentation and source."
        how = "converted from an earlier record" if self.converted else "recorded"
        parts = [f"{counted(self.calls)} {how}"]
        if self.beyond:
            parts.append(f"{self.beyond} of them beyond the recorded backend, so collshim follows the documentation")
        if self.accidents:
            parts.append(f"{self.accidents} hung or ended the process; in collshim they raise an error or return")
        return "; ".join(parts) + "."


def of_paths(framework: str, *paths: str) -> Evidence:
    """Return the recordings of these functions, taken together."""
    total = Evidence(version(framework), _is_converted(framework))
    for recording in (one for path in paths for one in _by_path(framework).get(path, ())):
        total.add(recording, declared(framework).get(recording.name))
    return total


def counted(calls: int) -> str:
    """Return ``1 call``, ``2 calls``."""
    return f"{calls} call{'s' * (calls != 1)}"


def version(framework: str) -> str:
    """Return the recorded version."""
    return str(_provenance(framework)["version"])


@cache
def _by_path(framework: str) -> dict[str, list[Recording]]:
    found: dict[str, list[Recording]] = defaultdict(list)
    for recording in recordings.read(recordings.folders(framework)[-1]):
        found[recording.asked.api[0]].append(recording)
    return dict(found)


def _is_converted(framework: str) -> bool:
    return _provenance(framework)["provenance"] == "converted"


@cache
def _provenance(framework: str) -> dict[str, object]:
    return recordings.provenance(recordings.folders(framework)[-1])
