"""The ranks that repeat a recorded call on collshim's adapters: threads of a new world for each call."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import collshim
from collshim.conformance.missing import is_missing
from collshim.conformance.recorder.dialects import dialect
from collshim.conformance.recorder.dialects.torch import TorchArrays
from collshim.conformance.recorder.performing import Answer, perform, raised
from collshim.conformance.recorder.recordings import Recording
from collshim.conformance.replay import sentences

PREFIX = "collshim."
ENGINE_SECONDS = 3.0  # for a wait inside collshim; some recorded calls never complete
PATIENT_SECONDS = 30.0  # for the same wait on a busy machine


def missing(recording: Recording) -> list[str]:
    """Return the functions that the call needs and the adapter lacks."""
    return [path for path in recording.asked.api if is_missing(PREFIX + path)]


def differing(framework: str, recording: Recording) -> list[str]:
    """Return the differences as sentences."""
    return replay_patiently(framework, recording)[1]


def replay_patiently(framework: str, recording: Recording) -> tuple[list[Answer], list[str]]:
    """Return each rank's answer and the differences; a call that timed out is repeated with a longer limit."""
    answers = replay(framework, recording, ENGINE_SECONDS)
    found = sentences(recording, answers)
    if found and any("collshim.errors.DeadlineError" in answer.get("raised", ()) for answer in answers):
        answers = replay(framework, recording, PATIENT_SECONDS)
        found = sentences(recording, answers)
    return answers, found


def replay(framework: str, recording: Recording, seconds: float) -> list[Answer]:
    """Return the answer of each of collshim's ranks; ``seconds`` is the deadline of a wait."""
    act: Callable[[], Any] = lambda: _answer(framework, recording)  # noqa: E731
    with collshim.options(timeout=seconds), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # functions deprecated upstream warn here too; only answers are compared
        found: list[Answer] = collshim.launch(act, recording.asked.processes, timeout=4 * seconds)
    return found


def _answer(framework: str, recording: Recording) -> Answer:
    speaks = dialect(framework)
    here = collshim.current()
    try:
        names = speaks.enter(PREFIX, recording.asked, here.rank)
    except Exception as error:
        return raised(error)
    arrays = TorchArrays(speaks.arrays.mutable, speaks.arrays.marks)
    return perform(recording.asked, here.rank, names, arrays)
