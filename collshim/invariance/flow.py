"""The operations of two traced runs, side by side: how each result and its gradient relate to the one-rank run's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from torch import Tensor

from collshim.invariance.records import BACKWARD, FORWARD, Event, RankRecord
from collshim.invariance.relations import Relation, Tolerance, meshes_of, relate
from collshim.invariance.verdict import names_of_factors


class Flow:
    """The events of a run on one rank, side by side with those of a run on several.

    Args:
        one: the record of the one-rank run.
        ranks: the records of the run on several ranks, by rank.
        mesh: the sizes of the mesh's axes, by name.
        tolerance: the tolerance for gradients; results of operations are compared with the same relative tolerance.
    """

    def __init__(
        self, one: RankRecord, ranks: Sequence[RankRecord], mesh: Mapping[str, int], tolerance: Tolerance
    ) -> None:
        self.one, self.ranks = one, ranks
        self.events = one.events
        self._mesh = mesh
        self._names = names_of_factors(len(ranks), mesh)
        self._values = Tolerance(tolerance.relative)
        self._gradients = Tolerance(tolerance.relative, tolerance.floor / 64)
        self._by_key = [{event.key: event for event in record.events} for record in ranks]
        self.users: dict[int, list[int]] = {}
        for number, event in enumerate(one.events):
            for maker in event.inputs:
                self.users.setdefault(maker, []).append(number)
        self.relation = lru_cache(None)(self._relation)
        self.gradient_relation = lru_cache(None)(self._gradient_relation)

    def others(self, number: int) -> list[Event]:
        """Return the ranks' events that correspond to an event of the one-rank run; empty if there are none."""
        key = self.events[number].key
        return [events[key] for events in self._by_key if key in events]

    def on_rank(self, event: Event, rank: int) -> Event | None:
        """Return the event of a rank that corresponds to another rank's event."""
        return self._by_key[rank].get(event.key)

    def is_aligned(self, number: int) -> bool:
        """Return whether the ranks have this event too, with a value."""
        event = self.events[number]
        others = self.others(number)
        return event.value is not None and bool(others) and all(other.value is not None for other in others)

    def _relation(self, number: int) -> Relation | None:
        return self.related(self.events[number].value, [other.value for other in self.others(number)], self._values)

    def _gradient_relation(self, number: int) -> Relation | None:
        event = self.events[number]
        gradients = [other.gradient for other in self.others(number)]
        return self.related(event.gradient, gradients, self._gradients)

    def related(
        self, expected: Tensor | None, others: Sequence[Tensor | None], tolerance: Tolerance
    ) -> Relation | None:
        """Return how the ranks' tensors relate to one of the one-rank run, if the factor between them has a name."""
        known = [other for other in others if other is not None]
        if expected is None or not known or len(known) != len(others):
            return None
        axes = list(self._mesh.values()) if len(known) == len(self.ranks) else []
        found = relate(expected, known, meshes_of(len(known), axes), tolerance)
        if found is None:
            return None
        return found if self.is_named(found.factor, 4 * tolerance.relative) else None

    def is_named(self, factor: float, allowed: float = 1e-3) -> bool:
        """Return whether a factor is a power of the number of ranks or of the size of an axis."""
        return any(abs(factor - number) <= allowed * number for number in self._names)

    def has_gradient(self, number: int) -> bool:
        """Return whether the event's gradient is known in both runs."""
        others = self.others(number)
        known = self.events[number].gradient is not None and bool(others)
        return known and all(other.gradient is not None for other in others)

    def forward(self) -> list[int]:
        """Return the numbers of the forward pass's events that both runs have."""
        return [
            number for number, event in enumerate(self.events) if event.phase == FORWARD and self.is_aligned(number)
        ]

    def is_wrong(self, number: int) -> bool:
        """Return whether an event's result on the ranks is unrelated to that of the one-rank run."""
        return self.is_aligned(number) and self.relation(number) is None

    def first_wrong(self) -> int | None:
        """Return the first event of the forward pass with right inputs and a wrong result; None if there is none.

        A loss is one number, which may be right by accident, so the values that it is computed from are checked too.
        """
        for end in self.one.ends:
            for number in (end, *self._before(end)):
                if self.is_wrong(number):
                    return self._root(number, set())
        return None

    def _before(self, number: int) -> list[int]:
        """Return the events from which a single number is computed, back to the nearest ones with several elements."""
        found, queue = list[int](), [number]
        while queue:
            for maker in self.events[queue.pop()].inputs:
                value = self.events[maker].value
                if maker < number and value is not None and maker not in found:
                    found.append(maker)
                    if value.numel() == 1:
                        queue.append(maker)
        return found

    def _root(self, number: int, seen: set[int]) -> int:
        seen.add(number)
        for maker in self.events[number].inputs:
            if maker not in seen and maker < number and self.is_wrong(maker):
                return self._root(maker, seen)
        return number

    def follow_moves(self, number: int) -> int:
        """Follow a wrong result through events that only move its elements; return the last of these events."""
        while is_moving(self.events[number]):
            users = [
                user for user in self.users.get(number, []) if is_moving(self.events[user]) and self.is_wrong(user)
            ]
            if not users:
                return number
            number = users[-1]
        return number

    def reordering(self, number: int) -> int | None:
        """Return the event that reordered the elements for a collective or a computation whose result is wrong.

        It only moves elements. It lies between the nearest event whose result is in order and the wrong one, as does a
        collective. It precedes the collective if the collective's result is wrong, and follows it otherwise.
        """
        found, queue = set[int](), list(self.events[number].inputs)
        while queue:
            maker = queue.pop()
            relation = self.relation(maker) if self.is_aligned(maker) else None
            is_in_order = relation is not None and relation.is_in_order
            if maker in found or is_in_order or not is_moving(self.events[maker]):
                continue
            found.add(maker)
            if not (self.events[maker].is_collective and relation is not None):
                queue += self.events[maker].inputs
        collective = max((one for one in found | {number} if self.events[one].is_collective), default=None)
        if collective is None:
            return None
        is_sent_wrongly = self.is_wrong(collective)
        side = [one for one in found if (one < collective if is_sent_wrongly else one > collective)]
        return max((one for one in side if self.events[one].name in _REORDERING), default=None)

    def letter(self, number: int) -> str:
        """Return the type of an event's result: R, V or P; "" if it is not known."""
        found = self.relation(number) if self.is_aligned(number) else None
        return "" if found is None else found.letter

    def gradient_letter(self, number: int) -> str:
        """Return the type of the gradient of an event's result: R, V or P; "" if it is not known."""
        found = self.gradient_relation(number) if self.has_gradient(number) else None
        return "" if found is None else found.letter


def cut_by(record: RankRecord) -> list[tuple[Event, bool]]:
    """Return the collectives of the forward pass that cut the gradient of their input, each with its ``in_graph``.

    A collective inside an autograd function counts only if the backward pass calls no collective from the same file.
    """
    files = {event.sites[0].rpartition(":")[0] for event in record.events if event.phase == BACKWARD and _shares(event)}
    found = list[tuple[Event, bool]]()
    for event in record.events:
        is_cut = event.in_graph or event.sites[0].rpartition(":")[0] not in files
        if event.phase == FORWARD and _shares(event) and event.needs_grad and is_cut:
            found.append((event, event.in_graph))
    return found


def _shares(event: Event) -> bool:
    return len(event.ranks) > 1


_MOVING = {
    *("view", "reshape", "permute", "transpose", "chunk", "split", "cat", "stack", "flip", "contiguous", "__getitem__"),
    *("select", "unbind", "flatten", "unflatten", "squeeze", "unsqueeze", "roll", "narrow", "movedim", "t", "clone"),
    *("tensor_split", "index_select", "gather", "repeat", "expand", "detach", "to", "concat", "unfold", "pad"),
}
_REORDERING = {
    *("permute", "transpose", "cat", "stack", "flip", "__getitem__", "select", "roll", "movedim", "t", "index_select"),
    *("gather", "repeat", "concat", "unfold", "swapaxes", "rearrange"),
}
_MOVING_COLLECTIVES = ("all_gather", "gather", "all_to_all", "broadcast", "scatter", "send", "recv")


def is_moving(event: Event) -> bool:
    """Return whether an event moves elements without computing."""
    return event.name in _MOVING or (event.is_collective and event.name.startswith(_MOVING_COLLECTIVES))
