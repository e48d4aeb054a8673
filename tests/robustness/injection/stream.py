"""A stream of mixed calls, the same on every rank: works waited for in another order, groups made, used and ended."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tests.robustness.injection.calls import DTYPES, KINDS, LENGTHS, Given, Started, is_right

_OFTEN = {"small": 6, "middle": 3, "large": 1}
_MOST_GROUPS = 3


class Step(NamedTuple):
    """The next action of a group's ranks.

    Attributes:
        does: "calls", "makes" a group, "closes" it, or "drops" it.
        group: its number; 0 for the world.
        ranks: of the group, in the world.
        kinds: the calls that are posted together.
        order: of the waits for their works.
    """

    does: str
    group: int
    ranks: tuple[int, ...]
    kinds: tuple[str, ...] = ()
    order: float = 0.0
    length: str = "small"
    dtype: str = "float32"


class WrongError(AssertionError):
    """The result of a wait is wrong."""


def steps(draw: random.Random, size: int, kinds: Sequence[str], *, groups: bool = True) -> Iterator[Step]:
    """Yield steps without end."""
    world, live, made = tuple(range(size)), list[Step](), 0
    while True:
        chance = draw.random()
        if groups and chance < 0.08 and len(live) < _MOST_GROUPS:
            made += 1
            ranks = tuple(draw.sample(world, draw.randint(2, size)))
            live.append(Step("makes", made, ranks))
            yield live[-1]
        elif live and chance < 0.14:
            yield live.pop(draw.randrange(len(live)))._replace(does=draw.choice(["closes", "drops"]))
        else:
            where = draw.choice(live) if live and chance < 0.3 else Step("calls", 0, world)
            yield calls(draw, kinds, where.group, where.ranks)


def calls(draw: random.Random, kinds: Sequence[str], group: int, ranks: tuple[int, ...], length: str = "") -> Step:
    """Draw a step of one call, or several at once."""
    several = draw.choices(kinds, k=draw.choice([1, 1, 1, 2, 4]))
    (drawn,) = draw.choices(list(_OFTEN), list(_OFTEN.values()))
    return Step("calls", group, ranks, tuple(several), draw.random(), length or drawn, draw.choice(list(DTYPES)))


def one(kind: str, size: int, length: str = "small") -> Step:
    """Make a step of one call in the world."""
    return Step("calls", 0, tuple(range(size)), (kind,), 0.0, length)


class Stream:
    """One rank's progress through the steps.

    Attributes:
        number: of the current step.
        began: when it last began to post or to wait.
        group: the ranks in the world of the group of its call.
    """

    def __init__(self, comm: Any, seed: int) -> None:
        self.number = -1
        self.began = time.monotonic()
        self._seed = seed
        self._groups: dict[int, Any] = {0: comm}
        self.group = tuple(comm.ranks)

    def post(self, step: Step) -> list[Started]:
        """Start the calls of a step."""
        self.number += 1
        self.began, self.group = time.monotonic(), step.ranks
        if step.does == "makes":
            self._groups[step.group] = self._groups[0].subgroup(step.ranks)
        elif step.does != "calls":
            group = self._groups.pop(step.group)
            if step.does == "closes" and group is not None:
                group.close()
        elif self._groups[step.group] is not None:
            comm, started = self._groups[step.group], list[Started]()
            for place, kind in enumerate(step.kinds):
                given = Given(self._seed, 10 * self.number + place, LENGTHS[step.length], DTYPES[step.dtype])
                started += KINDS[kind](comm, given)
            return started
        return []

    def finish(self, step: Step, started: Sequence[Started]) -> None:
        """Wait for them, and check every result.

        Raises:
            WrongError: a result is wrong.
        """
        for work, expected in random.Random(step.order).sample(started, len(started)):
            self.began = time.monotonic()
            got = work.wait()
            if expected is not ... and not is_right(got, expected):
                raise WrongError(f"step {self.number}, {step}: {str(got)[:300]}, should be {str(expected)[:300]}")

    def end_groups(self) -> None:
        """Close the remaining groups."""
        for number in [number for number in self._groups if number]:
            group = self._groups.pop(number)
            if group is not None:
                group.close()
