"""The results of recorded calls that collshim's adapter replayed."""

from __future__ import annotations

from collections.abc import Sequence

from collshim.conformance.deviations import declared
from collshim.conformance.recorder.performing import Answer
from collshim.conformance.recorder.recordings import Recording
from collshim.conformance.replay_ranks import missing, replay_patiently
from collshim.conformance.report import shown
from collshim.conformance.report.results import BEYOND, DEVIATION, FAIL, MISSING, PASS, CaseResult, Function
from collshim.conformance.report.verdicts import ADAPTER


def add_recording(function: Function, framework: str, recording: Recording) -> None:
    """Repeat the call, unless a function that it needs is missing, and add the result."""
    missing_functions = missing(recording)
    if missing_functions:
        function.missing = recording.asked.api[0] in missing_functions
        function.recorded.append(_result(recording, MISSING, f"missing: {', '.join(missing_functions)}"))
    else:
        answers, lines = replay_patiently(framework, recording)
        function.recorded.append(_result(recording, *_verdict(framework, recording, lines), answers))


def _result(recording: Recording, outcome: str, why: str, answers: Sequence[Answer] = ()) -> CaseResult:
    ranks = range(recording.asked.processes)
    return CaseResult(
        recording.name,
        outcome,
        why,
        call=recording.asked.call,
        inputs=shown.recorded_inputs(recording.asked),
        answers=tuple(map(shown.recorded_answer, answers)),
        whose=ADAPTER if outcome == DEVIATION else "",
        recorded=tuple(shown.recorded_answer(recording.of_rank(rank)) for rank in ranks),
    )


def _verdict(framework: str, recording: Recording, lines: Sequence[str]) -> tuple[str, str]:
    reason = declared(framework).get(recording.name)
    text = "\n".join(line.partition("\nfor `")[0].removeprefix(f"{recording.name}: ") for line in lines)
    if reason is not None:
        return (DEVIATION, f"{reason}\n{text}") if lines else (FAIL, f"declared as a deviation, but agrees: {reason}")
    if lines:
        return FAIL, text
    return (BEYOND, _beyond(recording.answers)) if _is_beyond(recording) else (PASS, "")


def _is_beyond(recording: Recording) -> bool:
    return recording.accident or any("limit" in answer for answer in recording.answers)


def _beyond(answers: Sequence[Answer]) -> str:
    endings = [answer["ended"] for answer in answers if "ended" in answer]
    return f"the real framework {endings[0]}" if endings else "beyond the recorded backend"
