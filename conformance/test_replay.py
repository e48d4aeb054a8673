"""collshim's adapters do what the real frameworks were recorded to do: every recording is repeated by threads.

Each call is one test, with all sizes of its worlds. If an adapter lacks a function that the call needs, the test is
skipped and counted as missing. Every declared deviation is expected to differ.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import cache

import pytest

from collshim.conformance.deviations import declared
from collshim.conformance.missing import skip
from collshim.conformance.recorder import recordings
from collshim.conformance.recorder.recordings import Recording
from collshim.conformance.replay_ranks import differing, missing
from collshim.frameworks import FRAMEWORKS

every_framework = pytest.mark.parametrize("framework", FRAMEWORKS)


@cache
def recorded(framework: str) -> dict[str, list[Recording]]:
    """Return the recordings of a framework by the call's id: one for each world."""
    found: dict[str, list[Recording]] = defaultdict(list)
    for folder in recordings.folders(framework):
        for recording in recordings.read(folder):
            found[recording.asked.id].append(recording)
    return dict(found)


CALLS = [
    pytest.param(framework, several, id=f"{framework}-{id}")
    for framework in FRAMEWORKS
    for id, several in recorded(framework).items()
]


@pytest.mark.parametrize(("framework", "several"), CALLS)
def test_the_adapter_answers_as_recorded(framework: str, several: Sequence[Recording]) -> None:
    lacking = {f"collshim.{path}" for recording in several for path in missing(recording)}
    if lacking:
        skip(lacking)
    deviations = declared(framework)
    wrong = [line for one in several if one.name not in deviations for line in differing(framework, one)]
    assert not wrong, "\n" + "\n".join(wrong)
    agree = [one.name for one in several if one.name in deviations and not differing(framework, one)]
    assert not agree, f"declared as deviations, but they agree: {', '.join(agree)}"


@every_framework
def test_every_declared_deviation_has_a_recording(framework: str) -> None:
    there = {one.name for several in recorded(framework).values() for one in several if not missing(one)}
    assert sorted(declared(framework).keys() - there) == []


@every_framework
def test_recordings_state_their_provenance(framework: str) -> None:
    for folder in recordings.folders(framework):
        source = recordings.provenance(folder)
        assert source["cases"] == len(list(recordings.read(folder)))
        assert f"{source['framework']}-{source['version']}" == folder.name
        assert source["provenance"] in ("recorded", "converted", "documentation", "source")
        assert {"how", "command", "date", "python"} <= {name for name, value in source.items() if value}


def test_recordings_are_many_and_small() -> None:
    count = sum(len(several) for framework in FRAMEWORKS for several in recorded(framework).values())
    size = sum(path.stat().st_size for path in recordings.FOLDER.rglob("*") if path.is_file())
    assert count >= 1500
    assert size < 5_000_000, "bytes"


@every_framework
def test_replays_are_counted(framework: str, record_property: Callable[[str, object], None]) -> None:
    every = [one for several in recorded(framework).values() for one in several]
    counted = Counter(_kind(framework, one) for one in every)
    record_property("recordings", {f"{framework} {kind}": number for kind, number in sorted(counted.items())})
    assert sum(counted.values()) == len(every) > 0


def _kind(framework: str, recording: Recording) -> str:
    if missing(recording):
        return "missing"
    if recording.name in declared(framework):
        return "declared deviations"
    if recording.accident:
        return "accidents upstream"
    limited = any("limit" in answer for answer in recording.answers)
    return "beyond the recorded backend" if limited else "to agree"
