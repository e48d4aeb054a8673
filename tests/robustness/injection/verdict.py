"""The required outcome of a trial, and its failures."""

from __future__ import annotations

import signal
from typing import NamedTuple

from collshim.conformance.faults.verdict import ranks_named
from tests.robustness.injection.rank import Ending
from tests.robustness.injection.supervisor import Outcome
from tests.robustness.injection.trial import Trial

ALLOWED = 1.0
"""The seconds after its deadline within which a rank has its error, on a machine that is not late itself."""

_LAGS = 8
"""How many times the machine's own lateness is allowed in addition: for the turns of several ranks and threads."""


class Verdict(NamedTuple):
    """The failures of a trial.

    Attributes:
        wrong: wrong results, false alarms, hangs, errors of other classes, signals, and what was left behind.
        unnamed: ranks whose error does not name the culprit.
        late: ranks whose error came too late.
        seconds: until the last rank's error.
    """

    wrong: list[str]
    unnamed: list[str]
    late: list[str]
    seconds: float

    @property
    def reasons(self) -> list[str]:
        return [*self.wrong, *self.unnamed, *self.late]


def judge(trial: Trial, outcome: Outcome) -> Verdict:
    """Compare a trial's outcome with its class's requirement."""
    verdict = Verdict([], [], [], _slowest(trial, outcome))
    for rank in range(trial.size):
        if rank == trial.victim:
            verdict.wrong.extend(_of_victim(trial, outcome))
        else:
            _judge_other(trial, outcome, rank, verdict)
    verdict.wrong.extend(_of_processes(trial, outcome))
    verdict.wrong.extend(f"left behind: {text}" for text in outcome.left)
    if outcome.fault_at is None and trial.fault.fate != "healthy" and not verdict.wrong:
        verdict.wrong.append("the fault did not come to pass")
    return verdict


def _of_victim(trial: Trial, outcome: Outcome) -> list[str]:
    ending, fate = outcome.endings.get(trial.victim), trial.fault.fate
    who = f"rank {trial.victim}, the victim,"
    if fate in ("dies", "stays"):
        return [] if ending is None else [f"{who} {_words(ending)}, should {fate.removesuffix('s')}"]
    if ending is None:
        return [f"{who} hangs"]
    if ending.wrong:
        return [f"{who} {_words(ending)}"]
    if fate == "healthy":
        return [f"{who} {_words(ending)}"] if ending.error else []
    if fate == "may be told" and not ending.error:
        return []
    if ending.ours and (fate != "raises" or trial.kind == "exception thrown into a thread" or trial.point is not None):
        return []
    if fate == "raises" and ending.injected:
        return []
    return [f"{who} {_words(ending)}, should be told" if fate != "raises" else f"{who} {_words(ending)}"]


def _judge_other(trial: Trial, outcome: Outcome, rank: int, verdict: Verdict) -> None:
    ending = outcome.endings.get(rank)
    if ending is None:
        verdict.wrong.append(f"rank {rank} hangs")
        return
    if ending.wrong or (ending.error and (trial.fault.fate == "healthy" or not ending.ours)):
        verdict.wrong.append(f"rank {rank} {_words(ending)}")
        return
    if trial.fault.fate == "healthy":
        return
    if not ending.error:
        victim = outcome.endings.get(trial.victim)
        if not (trial.fault.fate == "may be told" and victim is not None and not victim.error):
            verdict.wrong.append(f"rank {rank} is told nothing")
        return
    if not _names(trial, ending):
        verdict.unnamed.append(f"rank {rank} does not name rank {trial.victim}: {_words(ending)}")
    took = _took(outcome, ending)
    if took > trial.deadline + ALLOWED + _LAGS * outcome.lag:
        allowed = f"deadline {trial.deadline:g} s, the machine up to {outcome.lag:.2f} s late"
        verdict.late.append(f"rank {rank} is told after {took:.2f} s ({allowed}): {_words(ending)}")


def _names(trial: Trial, ending: Ending) -> bool:
    """Return whether the text has the victim's number, in the world or in the group of the call.

    For a cut network any rank's number counts, or that all came and the data did not move: a rank that hears nothing
    may still be heard.
    """
    named = ranks_named(ending.text)
    if trial.kind == "partition":
        return bool(named) or "the data did not move" in ending.text
    return trial.victim in named or (trial.victim in ending.group and ending.group.index(trial.victim) in named)


def _took(outcome: Outcome, ending: Ending) -> float:
    return ending.ended - max(ending.began, outcome.fault_at or 0.0)


def _slowest(trial: Trial, outcome: Outcome) -> float:
    others = [ending for rank, ending in outcome.endings.items() if rank != trial.victim and ending.error]
    return max((_took(outcome, ending) for ending in others), default=0.0)


def _of_processes(trial: Trial, outcome: Outcome) -> list[str]:
    """Return signals that nobody sent, and processes that did not end with their ranks."""
    found = []
    for rank, code in outcome.codes.items():
        of_victim = rank == trial.victim or trial.transport == "threads"
        if of_victim and trial.fault.fate in ("dies", "stays"):
            continue
        if code is None and rank in outcome.endings:
            found.append(f"rank {rank} has ended, its process has not")
        elif code is not None and code not in (0, 1):
            found.append(f"rank {rank}'s process ended by {_signal(code)}")
    return found


def _signal(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"code {code}"


def _words(ending: Ending) -> str:
    if not ending.error:
        return "came to the end"
    whose = "the injected " if ending.injected else "" if ending.ours else "a foreign "
    return f"got {whose}{ending.error} in step {ending.step}: {ending.text[:600]}"
