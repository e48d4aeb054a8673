"""The judgement of the ranks' observations of a bad call."""

from __future__ import annotations

from collections.abc import Sequence

from tests.engine.worlds import Outcome
from tests.robustness.drawing import Bad
from tests.robustness.rank import RIGHT, Reply

_BETWEEN_RANKS = {"MismatchError", "DeadlineError", "PeerError"}


def verdict(bad: Bad, replies: Sequence[Reply]) -> str:
    """Describe the failures by rank; return an empty string if there are none. ``replies`` by rank in the world."""
    found = [f"rank {rank}: {text}" for rank, reply in enumerate(replies) for text in _of_rank(bad, rank, reply)]
    return "; ".join(found)


def _of_rank(bad: Bad, rank: int, reply: Reply) -> list[str]:
    found = [_of_bad_call(bad, reply.bad)] if reply.culprit or not bad.alone else []
    found += [f"{name} was changed" for name in reply.changed]
    found += [f"then {_told(reply.good)}"] if reply.good.raised or reply.good.value else []
    return [text for text in found if text]


def _of_bad_call(bad: Bad, seen: Outcome) -> str:
    """Check that it was refused on its own rank before anything was sent, or, if the ranks disagree, reported to each.

    A thread that a rank started may make queries without communication, and gets the rank's own answer.
    """
    if bad.state == "a strange thread" and seen.value == RIGHT:
        return ""
    if "CollshimError" not in seen.raised:
        return f"should be an error of collshim's own, {_told(seen)}"
    if bad.alone == bool(_BETWEEN_RANKS & set(seen.raised)):
        return f"should be {'refused alone' if bad.alone else 'a disagreement'}, {_told(seen)}"
    return ""


def _told(seen: Outcome) -> str:
    return f"{seen.raised[0]}: {seen.text}" if seen.raised else f"gave {seen.value}"
