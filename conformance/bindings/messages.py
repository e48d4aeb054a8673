"""Sends and receives: every rank sends to the rank ``shift`` further on, and receives from as far behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from collshim.conformance.bindings.answers import Answer, Tree, waited
from collshim.conformance.bindings.binding import Binding, blank, blank_values, own, place_in
from collshim.conformance.bindings.rank_context import RankContext


class Neighbours(NamedTuple):
    """What a rank's calls are made from.

    Attributes:
        place, case, group: as for any binding.
        given: what it sends.
        buffer: what it receives into, or tells the shape of what comes by.
        to, source: the global ranks that it sends to and receives from.
        first: "send" or "recv": what to call first, so that calls that wait for each other meet.
    """

    place: RankContext
    case: Any
    group: Any
    given: Any
    buffer: Any
    to: int
    source: int
    first: str

    def in_turn(self, send: Callable[[], Tree], recv: Callable[[], Tree]) -> Tree:
        """What the two calls return, made in the order that lets them meet."""
        calls = {"send": send, "recv": recv}
        order = sorted(calls, key=lambda name: name != self.first)
        made = {name: calls[name]() for name in order}
        return {"send": made["send"], "recv": made["recv"]}


@dataclass(frozen=True, kw_only=True)
class Ring(Binding):
    """Each rank's array, one ``shift`` on.

    Attributes:
        speak: makes a rank's calls; what they return, handles included, is waited for.
        returns: from the array that comes, and the global rank that it comes from, to what the calls should return.
        fills: whether what comes is written into the buffer; else that stays blank.
    """

    collective: str = "ring"
    result: str = "received"
    speak: Callable[[Neighbours], Tree]
    returns: Callable[[Any, int], Tree]
    fills: bool = True

    def supports(self, case: Any) -> bool:
        """Whether the real framework admits ``case``; no rank sends to itself."""
        return super().supports(case) and case.shift % len(case.ranks) != 0

    def call(self, context: RankContext, case: Any, group: Any) -> Answer:
        """Send and receive."""
        rank, size = place_in(case, context), len(case.ranks)
        given, buffer = own(context, case), blank(case, case.shape)
        to, source = (rank + case.shift) % size, (rank - case.shift) % size
        first = "recv" if source < rank else "send"
        asked = Neighbours(context, case, group, given, buffer, case.ranks[to], case.ranks[source], first)
        returned = waited(self.speak(asked))
        return Answer(returned, {"sent": given, self._buffer: buffer})

    def expected(self, case: Any, rank: int, reference: Any) -> Answer:
        """The array of the rank behind."""
        received = reference.ring(case.arrays(), case.shift)[rank]
        source = case.ranks[(rank - case.shift) % len(case.ranks)]
        buffer = received if self.fills else blank_values(case, received.shape)
        return Answer(self.returns(received, source), {"sent": case.array_of(rank), self._buffer: buffer})

    def held(self, answer: Answer) -> Tree:
        """What came."""
        if self.fills:
            return answer.arguments["received"]
        return answer.returned["recv"] if isinstance(answer.returned, dict) else answer.returned[-1]

    @property
    def _buffer(self) -> str:
        return "received" if self.fills else "the buffer"
