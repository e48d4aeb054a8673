"""Recorded calls made again on the real MindSpore that collshim carries, in worlds that its own launcher starts."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from collshim.conformance.recorder.asked import Asked
from collshim.conformance.recorder.jobs import Job
from collshim.conformance.recorder.performing import Answer

SCRIPT = Path(__file__).with_name("carried_rank.py")
_OVER = "collshim.errors.CommunicationError"


def answered(framework: str, calls: Sequence[Asked]) -> list[list[Answer]]:
    """Every rank's answer to each call; all are of one world, which is begun anew behind a call that broke it."""
    found: list[list[Answer]] = []
    waiting = list(calls)
    while waiting:
        with Job(framework, _batch(waiting), sys.executable, SCRIPT) as job:
            there, ended = job.wait()
            log = job.log() if ended else ""
        settled = _settled(there, len(_batch(waiting)), ended)
        if not any("returned" in answer or "raised" in answer for answers in settled for answer in answers):
            raise RuntimeError(f"no rank answered {waiting[0].id} ({ended}):\n{log}")
        found += settled
        waiting = waiting[len(settled) :]
    return found


def _batch(waiting: list[Asked]) -> list[Asked]:
    if waiting[0].alone:
        return waiting[:1]
    return waiting[: next((index for index, asked in enumerate(waiting) if asked.alone), len(waiting))]


def _settled(there: list[list[Answer]], count: int, ended: str) -> list[list[Answer]]:
    settled: list[list[Answer]] = []
    for index in range(count):
        answers = [one[index] if index < len(one) else {"ended": ended} for one in there]
        settled.append(answers)
        if any("ended" in answer or _OVER in answer.get("raised", ()) for answer in answers):
            break
    return settled
