"""What the real frameworks were recorded to do, collshim's adapters do: every recording, made again among threads.

One test for each call, with the sizes of its worlds; one that needs a function that an adapter lacks is skipped and
counted as missing. Declared deviations are expected to differ, each of them.
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
    """The recordings of a framework by the call's id: one for each world."""
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
    assert not agree, f"declared to deviate, and agrees: {', '.join(agree)}"


@every_framework
def test_every_declared_deviation_names_a_recording_of_a_function_that_is_there(framework: str) -> None:
    there = {one.name for several in recorded(framework).values() for one in several if not missing(one)}
    assert sorted(declared(framework).keys() - there) == []


@every_framework
def test_recordings_tell_where_they_come_from(framework: str) -> None:
    for folder in recordings.folders(framework):
        told = recordings.provenance(folder)
        assert told["cases"] == len(list(recordings.read(folder)))
        assert f"{told['framework']}-{told['version']}" == folder.name
        assert told["provenance"] in ("recorded", "converted", "documentation", "source")
        assert {"how", "command", "date", "python"} <= {name for name, value in told.items() if value}


def test_there_are_enough_recordings_and_they_are_small() -> None:
    count = sum(len(several) for framework in FRAMEWORKS for several in recorded(framework).values())
    size = sum(path.stat().st_size for path in recordings.FOLDER.rglob("*") if path.is_file())
    assert count >= 1500
    assert size < 5_000_000, "bytes"


@every_framework
def test_what_was_replayed_is_counted(framework: str, record_property: Callable[[str, object], None]) -> None:
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
    return "beyond the backend that recorded" if limited else "to agree"
