"""The events that change one parameter's gradient after it is computed, on one rank."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import Any

from collshim.invariance.records import FORWARD, GRADIENT, Event, Parameter, RankRecord

Key = tuple[Any, ...]


def origins(record: RankRecord, event: Event) -> set[int]:
    """Return the numbers of the parameters whose gradients are inputs of an event after the forward pass."""
    queue, seen, found = [event], set[int](), set[int]()
    while queue:
        one = queue.pop()
        found.update(one.parameters)
        makers = [maker for maker in one.inputs if maker not in seen and record.events[maker].phase != FORWARD]
        seen.update(makers)
        queue += [record.events[maker] for maker in makers]
    return found


class Changes:
    """The events that use one parameter's gradient.

    Args:
        record: the rank's record.
        own: the parameter's record.

    Attributes:
        own: the parameter's record.
        by_key: the events that use the gradient, or that lead from it to the gradient that is compared, in order. The
            same event has the same key on every rank, even if the rank also has other parameters.
    """

    def __init__(self, record: RankRecord, own: Parameter) -> None:
        self.own = own
        self._events = record.events
        self._index = next(place for place, other in enumerate(record.parameters) if other is own)
        self._size = 0 if own.value is None else own.value.numel()
        turns = Counter[Key]()
        self.by_key: dict[Key, Event] = {}
        self._numbers: dict[Key, int] = {}
        for number in sorted({*self._direct, *self._leading_to_result}):
            event = self._events[number]
            key = event.phase, event.sites, event.name
            turns[key] += 1
            full = (*key, turns[key])
            self.by_key[full] = event
            self._numbers[full] = number

    @cached_property
    def _direct(self) -> list[int]:
        """The events that use the gradient itself."""
        return [
            number
            for number, event in enumerate(self._events)
            if event.phase != FORWARD and self._index in event.parameters
        ]

    @cached_property
    def _derived(self) -> set[int]:
        """The events whose results depend on the gradient."""
        found = set(self._direct)
        for number, event in enumerate(self._events):
            if event.phase != FORWARD and not found.isdisjoint(event.inputs):
                found.add(number)
        return found

    @cached_property
    def _leading_to_result(self) -> set[int]:
        """The events whose results have at least the gradient's size and lead to the gradient that is compared."""
        written = [number for number in self._direct if self._index in self._events[number].written]
        queue, found = written[-1:], set[int]()
        while queue:
            number = queue.pop()
            found.add(number)
            queue += [maker for maker in self._producers(number) if maker not in found]
        return found

    def _producers(self, number: int) -> list[int]:
        """Return the events that made an event's inputs; a gradient was made by the last event that wrote it."""
        event = self._events[number]
        makers = list(event.inputs)
        if self._index in event.parameters:
            before = [other for other in self._direct if other < number and self._index in self._events[other].written]
            makers += before[-1:]
        known = [(maker, self._events[maker]) for maker in makers if maker < number]
        later = [(maker, event) for maker, event in known if event.phase != FORWARD]
        return [maker for maker, event in later if event.is_in_place or event.is_collective or self._is_large(event)]

    def _is_large(self, event: Event) -> bool:
        return event.value is None or event.value.numel() >= self._size

    def on_the_way(self) -> dict[Key, Event]:
        """Return the events leading to the compared gradient that depend on it or draw random numbers, in order."""
        return {
            key: event
            for key, event in self.by_key.items()
            if (number := self._numbers[key]) in self._leading_to_result
            and self._is_large(event)
            and (number in self._derived or event.is_random)
        }

    def unused_reduction(self) -> Event | None:
        """Return the first reduction of values computed from the gradient whose result is not written back to it."""
        found = [self._events[number] for number in sorted(self._derived - self._leading_to_result)]
        sums = [event for event in found if len(event.ranks) > 1 and event.name.startswith(("all_reduce", "reduce"))]
        return next(filter(self._is_large, sums), None)

    def sources(self, key: Key) -> list[Key]:
        """Return the keys of the events that made an event's inputs; none if its input is the gradient itself."""
        keys = {number: key for key, number in self._numbers.items()}
        queue, found = self._producers(self._numbers[key]), list[Key]()
        while queue:
            maker = queue.pop()
            if self._events[maker].name == GRADIENT:
                queue += self._producers(maker)
            elif maker in self._derived and self._is_large(self._events[maker]):
                found.append(keys[maker])
        return found
