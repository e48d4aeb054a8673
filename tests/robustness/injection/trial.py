"""A trial: a world, a stream of calls and one fault, all drawn from one seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from collshim.launching.kinds import RANK_KINDS
from tests.robustness.injection.calls import KINDS, PLAIN, WAITED
from tests.robustness.injection.classes import CLASSES, FaultClass
from tests.robustness.injection.points import ONCE, POINTS, SUBJECTS, Point
from tests.robustness.injection.stream import Step, calls, one, steps

TRANSPORTS = RANK_KINDS
RAW = "torch"
"""The same fault in a program of raw torch.distributed over gloo."""

_AFTER = 14
"""Steps after the fault, in which every rank comes to need the victim."""

_SIZES = (2, 4)
_LONG = 150
"""Steps during which a fault comes at any time."""

_HEALTHY_DEADLINE = 12.0
_LONGER = 2.0
"""The factor of the deadline if a world is made, which takes a second on a busy machine."""


@dataclass(frozen=True)
class Trial:
    """The trial of a seed.

    Attributes:
        kind: the name of the fault's class.
        victim: the rank at which it happens.
        at: the step at which it happens.
        chosen: the options of the command line for it, without the seed.
        detail: the variant of the class: an exception, a signal, a number.
        seconds: its duration or delay, if that matters.
        agent: whether the launcher's agent serves the store, else rank 0.
    """

    seed: int
    transport: str
    size: int
    kind: str
    victim: int
    at: int
    moment: str
    detail: str
    seconds: float
    deadline: float
    check: bool
    agent: bool
    point: Point | None = None
    chosen: str = ""

    @property
    def fault(self) -> FaultClass:
        return CLASSES[self.kind]

    @property
    def _is_endless(self) -> bool:
        return self.fault.endless or (self.moment == "anywhere" and self.fault.fate != "healthy")

    def steps(self) -> Iterator[Step]:
        """Yield the stream of calls, the same on every rank."""
        draw = random.Random(self.seed)
        kinds = [*(PLAIN if self.transport == RAW else KINDS)]
        stream = steps(draw, self.size, kinds)
        yield from islice(stream, self.at)
        yield from self._provoked(draw)
        yield from stream if self._is_endless else islice(stream, _LONG if self.moment == "anywhere" else _AFTER)
        yield one("barrier", self.size)

    def _provoked(self, draw: random.Random) -> Iterator[Step]:
        """Yield the steps that lead to the fault."""
        world, subject = tuple(range(self.size)), self.fault.subject
        if self.fault.waits:
            yield one(draw.choice([*WAITED]), self.size, draw.choice(["small", "middle", "large"]))
        if subject in ("group", "descriptors"):
            yield Step("makes", -1, world)
        if subject in ("message", "descriptors"):
            for length in ("small", "middle", "large"):
                yield one("ring", self.size, length)
        elif subject == "collective":
            for length in ("small", "large"):
                yield one("all_reduce", self.size, length)
        elif subject == "edge":
            for _ in range(6):
                yield calls(draw, ["all_reduce", "ring", "barrier"], 0, world)

    def __str__(self) -> str:
        fields = {
            name: value for name, value in asdict(self).items() if name not in ("seed", "transport", "size", "chosen")
        }
        fields["point"] = "" if self.point is None else str(self.point)
        told = ", ".join(f"{name} {value}" for name, value in fields.items() if value not in ("", None))
        return f"seed {self.seed}: {self.size} {self.transport}: {told}"


def draw_trial(
    seed: int, transports: tuple[str, ...] = TRANSPORTS, sizes: tuple[int, int] = _SIZES, kind: str = ""
) -> Trial:
    """Draw the trial of a seed, from these transports and sizes, and of the class if given."""
    draw = random.Random(f"collshim {seed}")
    transport = draw.choice([each for each in transports if not kind or each in CLASSES[kind].transports])
    names = [name for name, found in CLASSES.items() if transport in found.transports and not found.asked]
    (name,) = [kind] if kind else draw.choices(names, [CLASSES[each].weight for each in names])
    found, size = CLASSES[name], draw.randint(*sizes)
    fields: dict[str, Any] = {"moment": draw.choice(found.moments), "detail": draw.choice(found.details)}
    if found.subject in SUBJECTS:
        points = POINTS[found.subject, transport]
        fields["point"] = draw.choice([each for each in points if not (each.is_locked and found.fate == "stays")])
    deadline = _HEALTHY_DEADLINE if found.fate == "healthy" else round(draw.uniform(1.0, 2.0), 2)
    if found.subject == "world":
        deadline *= _LONGER
    point = fields.get("point")
    at = 0 if found.subject == "world" or (point is not None and point.name == ONCE) else draw.randint(1, 8)
    shortest, longest = found.seconds
    return Trial(
        seed=seed,
        transport=transport,
        size=size,
        kind=name,
        victim=0 if found.server else draw.randrange(size),
        at=at,
        seconds=round(draw.uniform(shortest, longest) + (deadline if found.beyond else 0.0), 3),
        deadline=deadline,
        check=found.subject == "collective" or draw.random() < 0.7,
        agent=not found.server and name != "partition" and draw.random() < 0.5,
        chosen=_words(transports, sizes, kind),
        **fields,
    )


def _words(transports: tuple[str, ...], sizes: tuple[int, int], kind: str) -> str:
    """Return the options of ``drawn`` that are not defaults."""
    words = [f" --transport {transports[0]}"] if transports != TRANSPORTS else []
    words += [f" --ranks {sizes[0]}-{sizes[1]}"] if sizes != _SIZES else []
    words += [f" --kind {kind!r}"] if kind else []
    return "".join(words)
