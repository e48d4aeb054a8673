"""Sends and receives: every rank sends to the rank ``shift`` further on, and receives from as far behind."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from collshim.conformance.bindings.answers import Answer, Tree, waited
from collshim.conformance.bindings.binding import Binding, blank, blank_values, own, place_in, with_arrays
from collshim.conformance.bindings.rank_context import RankContext

PEERS = ("rank", "rank of another", "optional rank")
"""Roles of the other rank; what is no tag and no group besides is what is sent, or received into."""
BLANK = "nobody wrote here"
_GROUPS = ("group", "optional group")


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

    @property
    def within(self) -> Mapping[str, Any]:
        """The keyword argument that says the group."""
        return {} if self.group is None else {"group": self.group}

    def in_turn(self, send: Callable[[], Tree], recv: Callable[[], Tree]) -> Tree:
        """What the two calls return, made in the order that lets them meet."""
        calls = {"send": send, "recv": recv}
        order = sorted(calls, key=lambda name: name != self.first)
        made = {name: calls[name]() for name in order}
        return {"send": made["send"], "recv": made["recv"]}


class Half(NamedTuple):
    """One of two functions that meet: its name, and its parameters in order, with the role of each."""

    name: str
    takes: Mapping[str, str]

    def called(self, asked: Neighbours, home: str, message: Any, peer: int) -> Tree:
        """Call it, with all but its first argument by name; a tag is not said."""
        roles = {name: role for name, role in self.takes.items() if role not in (*_GROUPS, "tag")}
        first, *others = ((name, peer if role in PEERS else message) for name, role in roles.items())
        return asked.place.function(home + self.name)(first[1], **dict(others), **asked.within)


@dataclass(frozen=True, kw_only=True)
class Messages(Binding):
    """A function that sends and one that receives, of the same module as the one that the spelling is of.

    Attributes:
        sends, receives: the two.
        in_turn: whether a call waits for the other rank's, so that they are made in an order that lets them meet.
        speak: makes a rank's calls, where these are not one of each; what they return is waited for.
        returns: from what comes, and the global rank that it comes from, to what the calls should return.
    """

    result: str = "received"
    sends: Half
    receives: Half
    in_turn: bool = True
    speak: Callable[[Neighbours], Tree] | None = None
    returns: Callable[[Any, int], Tree]

    @property
    def home(self) -> str:
        """The module, with a dot behind."""
        return self.path.removesuffix(self.path.rpartition(".")[2])

    @property
    def halves(self) -> tuple[str, ...]:
        """The paths of the two, the spelling's own first; that alone where it makes its own of them."""
        both = (self.home + self.sends.name, self.home + self.receives.name)
        return tuple(sorted(both, key=lambda path: path != self.path)) if self.path in both else (self.path,)

    def supports(self, case: Any) -> bool:
        """Whether the real framework admits ``case``; no rank sends to itself."""
        return super().supports(case) and case.shift % len(case.ranks) != 0

    def call(self, context: RankContext, case: Any, group: Any) -> Answer:
        """Send and receive."""
        rank, size = place_in(case, context), len(case.ranks)
        given, buffer = self.arguments(context, case)
        to, source = (rank + case.shift) % size, (rank - case.shift) % size
        first = "recv" if source < rank else "send"
        asked = Neighbours(context, case, group, given, buffer, case.ranks[to], case.ranks[source], first)
        returned = waited((self.speak or self._both)(asked))
        return Answer(returned, {"sent": given, self.buffer: buffer})

    @abstractmethod
    def arguments(self, context: RankContext, case: Any) -> tuple[Any, Any]:
        """What a rank sends, and what it receives into."""

    @property
    def buffer(self) -> str:
        """What an answer knows the latter by."""
        return "received"

    def _both(self, asked: Neighbours) -> Tree:
        send = partial(self.sends.called, asked, self.home, asked.given, asked.to)
        recv = partial(self.receives.called, asked, self.home, asked.buffer, asked.source)
        return asked.in_turn(send, recv) if self.in_turn else {"send": send(), "recv": recv()}


@dataclass(frozen=True, kw_only=True)
class Ring(Messages):
    """Each rank's array, one ``shift`` on.

    Attributes:
        fills: whether what comes is written into the buffer; else that stays blank.
    """

    collective: str = "ring"
    fills: bool = True

    def arguments(self, context: RankContext, case: Any) -> tuple[Any, Any]:
        """This rank's array, and a blank one."""
        return own(context, case), blank(case, case.shape)

    def expected(self, case: Any, rank: int, reference: Any) -> Answer:
        """The array of the rank behind."""
        received = reference.ring(case.arrays(), case.shift)[rank]
        source = case.ranks[(rank - case.shift) % len(case.ranks)]
        buffer = received if self.fills else blank_values(case, received.shape)
        return Answer(self.returns(received, source), {"sent": case.array_of(rank), self.buffer: buffer})

    def held(self, answer: Answer) -> Tree:
        """What came."""
        if self.fills:
            return answer.arguments["received"]
        return answer.returned["recv"] if isinstance(answer.returned, dict) else answer.returned[-1]

    @property
    def buffer(self) -> str:
        """What an answer knows what is received into by."""
        return "received" if self.fills else "the buffer"


@dataclass(frozen=True, kw_only=True)
class RingObjects(Messages):
    """Two objects in one call."""

    collective: str = "ring_object"

    def arguments(self, context: RankContext, case: Any) -> tuple[Any, Any]:
        """This rank's objects, and blanks."""
        rank = place_in(case, context)
        return [with_arrays(case, case.objects()[rank]), rank], [BLANK, BLANK]

    def expected(self, case: Any, rank: int, reference: Any) -> Answer:
        """The objects of the rank behind."""
        behind, objects = (rank - case.shift) % len(case.ranks), case.objects()
        received = [objects[behind], behind]
        held = {"sent": [objects[rank], rank], "received": received}
        return Answer(self.returns(received, case.ranks[behind]), held)
