"""Collectives of Python objects: torch's spelling, which others follow. Lists are filled in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from collshim.conformance.bindings.answers import Answer, Tree
from collshim.conformance.bindings.binding import Binding, place_in
from collshim.conformance.bindings.messages import Neighbours
from collshim.conformance.bindings.rank_context import RankContext

BLANK = "nobody wrote here"


@dataclass(frozen=True, kw_only=True)
class OfObjects(Binding):
    """A call that returns None and leaves its result in an argument.

    Attributes:
        with_group: the keyword arguments that say the group.
        with_root: the keyword arguments that say the root.
    """

    with_group: Callable[[Any], Mapping[str, Any]] = lambda group: {"group": group}
    with_root: Callable[[Any], Mapping[str, Any]] = lambda case: {}

    def speak(self, context: RankContext, case: Any, group: Any, *arguments: Any) -> Tree:
        """Call the function."""
        return context.function(self.path)(*arguments, **self.with_root(case), **self.with_group(group))


@dataclass(frozen=True, kw_only=True)
class AllGatherObject(OfObjects):
    """``all_gather_object(object_list, obj)``."""

    collective: str = "all_gather_object"
    result: str = "object_list"

    def call(self, context: RankContext, case: Any, group: Any) -> Answer:
        """Gather into a list of blanks."""
        given, held = case.objects()[place_in(case, context)], [BLANK] * len(case.ranks)
        return Answer(self.speak(context, case, group, held, given), {"object_list": held, "obj": given})

    def expected(self, case: Any, rank: int, reference: Any) -> Answer:
        """Every rank's object, in rank order."""
        return Answer(None, {"object_list": case.objects(), "obj": case.objects()[rank]})


@dataclass(frozen=True, kw_only=True)
class GatherObject(OfObjects):
    """``gather_object(obj, object_gather_list)``.

    Attributes:
        lists_everywhere: whether the other ranks give a list too, which is left as it is.
    """

    collective: str = "gather_object"
    result: str = "object_gather_list"
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
class BroadcastObjects(OfObjects):
    """``broadcast_object_list(object_list)``: two objects in one call."""

    collective: str = "broadcast_object"
    result: str = "object_list"

    def call(self, context: RankContext, case: Any, group: Any) -> Answer:
        """Broadcast into a list of blanks."""
        rank = place_in(case, context)
        held = [case.objects()[rank], rank] if rank == case.root else [BLANK, BLANK]
        return Answer(self.speak(context, case, group, held), {"object_list": held})

    def expected(self, case: Any, rank: int, reference: Any) -> Answer:
        """The root's objects."""
        return Answer(None, {"object_list": [case.objects()[case.root], case.root]})


@dataclass(frozen=True, kw_only=True)
class ScatterObjects(OfObjects):
    """``scatter_object_list(scatter_object_output_list, scatter_object_input_list)``: the first output is written."""

    collective: str = "scatter_object"
    result: str = "scatter_object_output_list"

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
class RingObjects(OfObjects):
    """``send_object_list(object_list)`` and ``recv_object_list(object_list)``: two objects in one call.

    Attributes:
        other: dotted path of the function that receives.
        received: from the global rank that objects come from to what the receiving call returns.
        peers: the parameters that say where to send and where from.
    """

    collective: str = "ring_object"
    result: str = "received"
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
