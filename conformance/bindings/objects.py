"""Collectives of Python objects: torch's spelling, which others follow. Lists are filled in place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from collshim.conformance.bindings.answers import Answer, Tree
from collshim.conformance.bindings.binding import place_in
from collshim.conformance.bindings.messages import Neighbours
from collshim.conformance.bindings.outputs import Writes
from collshim.conformance.bindings.rank_context import RankContext

BLANK = "nobody wrote here"


@dataclass(frozen=True, kw_only=True)
class AllGatherObject(Writes):
    """``all_gather_object(object_list, obj)``."""

    collective: ClassVar[str] = "all_gather_object"
    result: ClassVar[str] = "object_list"

    def call(self, context: RankContext, case: Any, group: Any) -> Answer:
        """Gather into a list of blanks."""
        given, held = case.objects()[place_in(case, context)], [BLANK] * len(case.ranks)
        return Answer(self.speak(context, case, group, held, given), {"object_list": held, "obj": given})

    def expected(self, case: Any, rank: int, reference: Any) -> Answer:
        """Every rank's object, in rank order."""
        return Answer(None, {"object_list": case.objects(), "obj": case.objects()[rank]})


@dataclass(frozen=True, kw_only=True)
class GatherObject(Writes):
    """``gather_object(obj, object_gather_list)``.

    Attributes:
        lists_everywhere: whether the other ranks give a list too, which is left as it is.
    """

    collective: ClassVar[str] = "gather_object"
    result: ClassVar[str] = "object_gather_list"
    lists_everywhere: bool = False

    def call(self, context: RankContext, case: Any, group: Any) -> Answer:
        """Gather into a list of blanks."""
        rank = place_in(case, context)
        held = [BLANK] * len(case.ranks) if self.lists_everywhere or rank == case.root else None
        returned = self.speak(context, case, group, case.objects()[rank], held)
        return Answer(returned, {"object_gather_list": held})

    def expected(self, case: Any, rank: int, reference: Any) -> Answer:
        """Every rank's object on the root, in rank order."""
        elsewhere = [BLANK] * len(case.ranks) if self.lists_everywhere else None
        return Answer(None, {"object_gather_list": case.objects() if rank == case.root else elsewhere})


@dataclass(frozen=True, kw_only=True)
class BroadcastObjects(Writes):
    """``broadcast_object_list(object_list)``: two objects in one call."""

    collective: ClassVar[str] = "broadcast_object"
    result: ClassVar[str] = "object_list"

    def call(self, context: RankContext, case: Any, group: Any) -> Answer:
        """Broadcast into a list of blanks."""
        rank = place_in(case, context)
        held = [case.objects()[rank], rank] if rank == case.root else [BLANK, BLANK]
        return Answer(self.speak(context, case, group, held), {"object_list": held})

    def expected(self, case: Any, rank: int, reference: Any) -> Answer:
        """The root's objects."""
        return Answer(None, {"object_list": [case.objects()[case.root], case.root]})


@dataclass(frozen=True, kw_only=True)
class ScatterObjects(Writes):
    """``scatter_object_list(scatter_object_output_list, scatter_object_input_list)``: the first output is written."""

    collective: ClassVar[str] = "scatter_object"
    result: ClassVar[str] = "scatter_object_output_list"

    def call(self, context: RankContext, case: Any, group: Any) -> Answer:
        """Scatter into a list of two blanks."""
        rank = place_in(case, context)
        given, held = case.object_parts()[rank] if rank == case.root else None, [BLANK, BLANK]
        returned = self.speak(context, case, group, held, given)
        return Answer(returned, {"scatter_object_output_list": held, "scatter_object_input_list": given})

    def expected(self, case: Any, rank: int, reference: Any) -> Answer:
        """This rank's of the root's objects."""
        parts = case.object_parts()
        given = parts[rank] if rank == case.root else None
        held = [parts[case.root][rank], BLANK]
        return Answer(None, {"scatter_object_output_list": held, "scatter_object_input_list": given})


@dataclass(frozen=True, kw_only=True)
class RingObjects(Writes):
    """``send_object_list(object_list)`` and ``recv_object_list(object_list)``: two objects in one call.

    Attributes:
        other: dotted path of the function that receives.
        received: from the global rank that objects come from to what the receiving call returns.
        peers: the parameters that say where to send and where from.
    """

    collective: ClassVar[str] = "ring_object"
    result: ClassVar[str] = "received"
    other: str
    received: Callable[[int], Tree]
    peers: tuple[str, str] = ("dst", "src")

    def supports(self, case: Any) -> bool:
        """Whether the real framework admits ``case``; no rank sends to itself."""
        return super().supports(case) and case.shift % len(case.ranks) != 0

    def call(self, context: RankContext, case: Any, group: Any) -> Answer:
        """Send and receive, into a list of blanks."""
        rank, size = place_in(case, context), len(case.ranks)
        given, held = [case.objects()[rank], rank], [BLANK, BLANK]
        to, source = (rank + case.shift) % size, (rank - case.shift) % size
        first = "recv" if source < rank else "send"
        asked = Neighbours(context, case, group, given, held, case.ranks[to], case.ranks[source], first)
        return Answer(self._exchanged(asked), {"sent": given, "received": held})

    def expected(self, case: Any, rank: int, reference: Any) -> Answer:
        """The objects of the rank behind."""
        behind = (rank - case.shift) % len(case.ranks)
        objects = case.objects()
        held = {"sent": [objects[rank], rank], "received": [objects[behind], behind]}
        return Answer({"send": None, "recv": self.received(case.ranks[behind])}, held)

    def _exchanged(self, asked: Neighbours) -> Tree:
        within = self.with_group(asked.group)
        send, recv = asked.place.function(self.path), asked.place.function(self.other)
        return asked.in_turn(
            lambda: send(asked.given, **{self.peers[0]: asked.to}, **within),
            lambda: recv(asked.buffer, **{self.peers[1]: asked.source}, **within),
        )
