"""How the ranks' gradients of one parameter relate to the one-rank run's, after each event that changes them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from torch import Tensor

from collshim.invariance.changes import Changes, Key
from collshim.invariance.culprit import Culprit, changing
from collshim.invariance.flow import Flow, is_moving
from collshim.invariance.pieces import Piece
from collshim.invariance.records import GRADIENT, Event, Parameter, RankRecord
from collshim.invariance.relations import Relation, Tolerance, as_float, factor_of, shares


class State(NamedTuple):
    """How the ranks' gradients of a parameter relate to the gradient of the one-rank run.

    Attributes:
        letter: "R", or "V" for shards, if each is right up to the factor; "P" if their sum is right up to the factor.
        factor: see ``Relation``.
        weights: the weights with which the ranks' gradients add up to it, if the weights are unequal.
    """

    letter: str
    factor: float
    weights: tuple[float, ...] = ()

    @property
    def is_right(self) -> bool:
        """Whether every rank has the gradient of the one-rank run, or its shard of it."""
        return self.letter in ("R", "V") and abs(self.factor - 1) < 1e-3


Step = tuple[Event, State | None, State | None]
"""An event that changed a gradient, with the states before and after it."""


class States:
    """The states of one parameter's gradient.

    Args:
        one: the record of the one-rank run.
        whole: the parameter in the one-rank run.
        ranks: the records of the run on several ranks.
        pieces: the pieces of the parameter that the ranks hold.
        flow: the events of both runs.
        tolerance: the tolerance for gradients.

    Attributes:
        changes: the events that change the gradient of each piece.
    """

    def __init__(
        self,
        one: RankRecord,
        whole: Parameter,
        ranks: Sequence[RankRecord],
        pieces: Sequence[Piece],
        flow: Flow,
        tolerance: Tolerance,
    ) -> None:
        self._one = Changes(one, whole)
        self._pieces, self._flow, self._tolerance = pieces, flow, tolerance
        self.changes = [Changes(ranks[piece.rank], piece.own) for piece in pieces]

    @cached_property
    def _expected(self) -> Tensor | None:
        gradient = self._one.own.gradient
        return None if gradient is None else as_float(gradient)

    def of(self, gradients: Sequence[Tensor | None], expected: Tensor | None = None) -> State | None:
        """Return the state of gradients, one for each piece; None if they are unrelated to the ``expected`` one."""
        expected = self._expected if expected is None else expected
        if expected is None or any(gradient is None for gradient in gradients):
            return None
        groups = dict[tuple[object, ...], list[int]]()
        for number, piece in enumerate(self._pieces):
            groups.setdefault(_part(piece), []).append(number)
        states = list[State]()
        for members in groups.values():
            state = self._of_part([gradients[number] for number in members], members, expected)
            if state is None:
                return None
            states.append(state)
        first = states[0]
        same = all(one.letter == first.letter and abs(one.factor - first.factor) < 1e-3 for one in states)
        if not same:
            return None
        return first._replace(letter="V") if len(groups) > 1 and first.letter == "R" else first

    def _of_part(self, gradients: Sequence[Tensor | None], members: Sequence[int], expected: Tensor) -> State | None:
        part = self._pieces[members[0]].of(expected)
        known = [gradient.reshape(part.shape) for gradient in gradients if gradient is not None]
        tolerance = self._tolerance
        if all(tolerance.alike(as_float(other), as_float(known[0])) for other in known[1:]):
            factor = factor_of(as_float(known[0]), part, tolerance)
            return None if factor is None else State("R", factor)
        relation: Relation | None = self._flow.related(part, known, tolerance)
        if relation is not None and relation.letter in ("R", "P"):
            return State(relation.letter, relation.factor)
        weights = shares(part, known, tolerance)
        if weights is None:
            return None
        if max(weights) - min(weights) <= 1e-2 * max(map(abs, weights)):  # a multiple of the sum
            return State("P", 1 / weights[0])
        return State("P", 1.0, tuple(weights))

    def steps(self) -> list[Step]:
        """Return the events that changed the gradient after it was computed, with the states before and after."""
        known = [(event, self._events(key)) for key, event in self.changes[0].by_key.items() if event.name != GRADIENT]
        return [(event, *self.around(others)) for event, others in known]

    def around(self, events: Sequence[Event | None]) -> tuple[State | None, State | None]:
        """Return the states before and after one event of each piece; None if an event lacks values of that size."""
        before = [None if event is None else event.before for event in events]
        after = [None if event is None else event.value for event in events]
        return self.of(before) if self._fit(before) else None, self.of(after) if self._fit(after) else None

    def _events(self, key: Key) -> list[Event | None]:
        return [changes.by_key.get(key) for changes in self.changes]

    def change(self) -> Culprit | None:
        """Explain a gradient by the first event whose input is related to the one-rank run, but its result is not."""
        expected = self._one.own.raw
        raw = self._related_state(expected, [changes.own.raw for changes in self.changes])
        if raw is None or raw.weights:
            return None
        states = dict[Key, State | None]()
        for key, event in self.changes[0].on_the_way().items():
            own = self._one.by_key.get(key)
            values = [None if other is None else other.value for other in self._events(key)]
            if own is not None and own.value is not None:
                expected = own.value
            before = [states[source] for source in self.changes[0].sources(key)] or [raw]
            known = [state for state in before if state is not None]
            states[key] = known[-1] if event.value is None and known else self._related_state(expected, values)
            is_known = all(value is not None for value in values) and len(known) == len(before)
            if is_known and known[-1].letter == "P" and not (event.is_random or self._is_summed_later(event)):
                return None
            if is_known and _goes_wrong(known[-1], states[key]) and _computes(event, self.changes[0].own.raw):
                return changing(event, known[-1].letter, self.changes[0].own.raw, joins_parts=self._joins_parts(event))
        return None

    def _is_summed_later(self, event: Event) -> bool:
        """Return whether this event or a later one on the way to the compared gradient is a collective."""
        way = list(self.changes[0].on_the_way().values())
        first = next(place for place, other in enumerate(way) if other is event)
        return any(other.is_collective for other in way[first:])

    def _related_state(self, expected: Tensor | None, values: Sequence[Tensor | None]) -> State | None:
        """Return how the ranks' values relate to a value of the one-rank run, of the parameter's size or any other."""
        whole = self._expected
        if expected is None or whole is None:
            return None
        if expected.numel() == whole.numel() and self._fit(values):
            return self.of(values, as_float(expected).reshape(whole.shape))
        relation = self._flow.related(expected, values, self._tolerance)
        return None if relation is None else State(relation.letter, relation.factor)

    def _fit(self, values: Sequence[Tensor | None]) -> bool:
        """Return whether the values have as many elements as the gradients."""
        known = [piece.own.gradient for piece in self._pieces]
        pairs = zip(values, known, strict=True)
        return all(one is not None and two is not None and one.numel() == two.numel() for one, two in pairs)

    def _joins_parts(self, event: Event) -> bool:
        """Return whether the ranks of a collective hold different parts of the parameter, or some hold none."""
        parts = {_part(piece) for piece in self._pieces if piece.rank in event.ranks}
        return len(parts) > 1 or len([piece for piece in self._pieces if piece.rank in event.ranks]) < len(event.ranks)


def _part(piece: Piece) -> tuple[object, ...]:
    """Return a key for the part of the parameter that a piece is."""
    return piece.dim, None if piece.rows is None else tuple(piece.rows.tolist()), piece.place, piece.flat


def _goes_wrong(before: State, after: State | None) -> bool:
    """Return whether a gradient that was right, or a part of the right sum, no longer is either."""
    return after is None or (bool(after.weights) and not before.weights)


def _computes(event: Event, raw: Tensor | None) -> bool:
    """Return whether an event does more than move numbers; rounding counts as more."""
    is_rounding = event.value is not None and raw is not None and event.value.dtype.itemsize < raw.dtype.itemsize
    return event.is_collective or is_rounding or not is_moving(event)
