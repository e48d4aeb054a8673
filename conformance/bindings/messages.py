"""Sends and receives: every rank sends ``shift`` ranks forward and receives from ``shift`` ranks behind."""

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
"""Roles of the other rank; a parameter that is neither that, nor a tag, nor a group, is the message or its buffer."""
BLANK = "nobody wrote here"
_GROUPS = ("group", "optional group")


class Neighbours(NamedTuple):
    """The arguments of a rank's calls.

    Attributes:
        place, case, group: the same as for any binding.
        given: the message to send.
        buffer: the buffer to receive into, or an array of the message's shape.
        to, source: the global ranks that it sends to and receives from.
        first: "send" or "recv": the call to make first, so that blocking calls match.
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
        """The keyword argument for the group."""
        return {} if self.group is None else {"group": self.group}

    def in_turn(self, send: Callable[[], Tree], recv: Callable[[], Tree]) -> Tree:
        """Make the two calls in an order in which they match, and return their results."""
        calls = {"send": send, "recv": recv}
        order = sorted(calls, key=lambda name: name != self.first)
        made = {name: calls[name]() for name in order}
        return {"send": made["send"], "recv": made["recv"]}


class Half(NamedTuple):
    """One of two functions whose calls match: its name, and its parameters in order, with the role of each."""

    name: str
    takes: Mapping[str, str]

    def called(self, asked: Neighbours, home: str, message: Any, peer: int) -> Tree:
        """Call the function, with all but its first argument by name and without a tag."""
        roles = {name: role for name, role in self.takes.items() if role not in (*_GROUPS, "tag")}
        first, *others = ((name, peer if role in PEERS else message) for name, role in roles.items())
        return asked.place.function(home + self.name)(first[1], **dict(others), **asked.within)


@dataclass(frozen=True, kw_only=True)
class Messages(Binding):
    """A sending and a receiving function; both are in the spelling's module.

    Attributes:
        sends, receives: the two functions.
        in_turn: whether a call waits for the other rank's, so that the order of the calls matters.
        speak: makes a rank's calls, if they are not one of each; handles that they return are waited for.
        returns: from the received message and its source's global rank, what the calls should return.
    """

    result: str = "received"
    sends: Half
    receives: Half
    in_turn: bool = True
    speak: Callable[[Neighbours], Tree] | None = None
    returns: Callable[[Any, int], Tree]

    @property
    def home(self) -> str:
        """The module's path, ending with a dot."""
        return self.path.removesuffix(self.path.rpartition(".")[2])

    @property
    def halves(self) -> tuple[str, ...]:
        """The paths of the two functions, the spelling's own first; only the spelling's own if it combines the two."""
        both = (self.home + self.sends.name, self.home + self.receives.name)
        return tuple(sorted(both, key=lambda path: path != self.path)) if self.path in both else (self.path,)

    def supports(self, case: Any) -> bool:
        """Return whether the real framework admits ``case``; no rank sends to itself."""
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
        """Return a rank's message, and its buffer to receive into."""

    @property
    def buffer(self) -> str:
        """The name of the receive buffer in an answer."""
        return "received"

    def _both(self, asked: Neighbours) -> Tree:
        send = partial(self.sends.called, asked, self.home, asked.given, asked.to)
        recv = partial(self.receives.called, asked, self.home, asked.buffer, asked.source)
        return asked.in_turn(send, recv) if self.in_turn else {"send": send(), "recv": recv()}


@dataclass(frozen=True, kw_only=True)
class Ring(Messages):
    """A ring of arrays: each rank's array moves ``shift`` ranks forward.

    Attributes:
        fills: whether the message is written into the buffer; otherwise the buffer stays blank.
    """

    collective: str = "ring"
    fills: bool = True

    def arguments(self, context: RankContext, case: Any) -> tuple[Any, Any]:
        """Return this rank's array and a blank one."""
        return own(context, case), blank(case, case.shape)

    def expected(self, case: Any, rank: int, reference: Any) -> Answer:
        """Expect the array of the rank ``shift`` behind."""
        received = reference.ring(case.arrays(), case.shift)[rank]
        source = case.ranks[(rank - case.shift) % len(case.ranks)]
        buffer = received if self.fills else blank_values(case, received.shape)
        return Answer(self.returns(received, source), {"sent": case.array_of(rank), self.buffer: buffer})

    def held(self, answer: Answer) -> Tree:
        """Return the received array."""
        if self.fills:
            return answer.arguments["received"]
        return answer.returned["recv"] if isinstance(answer.returned, dict) else answer.returned[-1]

    @property
    def buffer(self) -> str:
        """The name of the receive buffer in an answer."""
        return "received" if self.fills else "the buffer"


@dataclass(frozen=True, kw_only=True)
class RingObjects(Messages):
    """A ring of objects, two in each call."""

    collective: str = "ring_object"

    def arguments(self, context: RankContext, case: Any) -> tuple[Any, Any]:
        """Return this rank's objects and blanks."""
        rank = place_in(case, context)
        return [with_arrays(case, case.objects()[rank]), rank], [BLANK, BLANK]

    def expected(self, case: Any, rank: int, reference: Any) -> Answer:
        """Expect the objects of the rank ``shift`` behind."""
        behind, objects = (rank - case.shift) % len(case.ranks), case.objects()
        received = [objects[behind], behind]
        held = {"sent": [objects[rank], rank], "received": received}
        return Answer(self.returns(received, case.ranks[behind]), held)
