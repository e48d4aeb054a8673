"""The work of a pool's rank: the bad call if it is the culprit, then a valid one with the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

import collshim
from tests.engine.worlds import Outcome, attempt
from tests.robustness.context import RankContext
from tests.robustness.drawing import Bad
from tests.robustness.spelling import Arguments
from tests.robustness.states import STATES
from tests.robustness.surfaces import SURFACES

WAIT_SECONDS = 20.0
"""The limit of a wait in a collective; less than the pool's patience, so that its text is received."""


RIGHT = "the right answer"
"""The value of a call in a bad state that is answered all the same: a query that needs no communication."""


class Reply(NamedTuple):
    """The observation of one rank.

    Attributes:
        culprit: whether it made the bad call, or the difference that made the others' bad.
        bad: the outcome of the bad call; its value is None, or its type's name, or ``RIGHT``.
        changed: the arguments of the bad call that were changed.
        good: the outcome of the valid call; its value is empty if it was right, else describes it.
    """

    culprit: bool
    bad: Outcome
    changed: tuple[str, ...]
    good: Outcome


def serve(place: object, receive: Callable[[], Bad | None], send: Callable[[Reply], None]) -> None:
    """Answer each request of the pool, until it sends None."""
    world = collshim.current()
    world.communicator.timeout = WAIT_SECONDS
    groups = {name: surface.enter(world) for name, surface in SURFACES.items()}
    while (request := receive()) is not None:
        send(_reply(request, groups[request.surface], world.rank))


def _reply(bad: Bad, groups: Mapping[str, Any], rank: int) -> Reply:
    ranks, group = groups[bad.group]
    destroyed = groups["destroyed"][1] if "destroyed" in groups else None
    context = RankContext(ranks, ranks.index(rank), group, bad.nonce, bad.array_kind, destroyed=destroyed)
    seen, changed = _bad_call(bad, context)
    return Reply(
        context.rank == bad.culprit,
        seen,
        changed,
        attempt(bad.spelled.run, context._replace(nonce=bad.nonce + 100)),
    )


def _bad_call(bad: Bad, context: RankContext) -> tuple[Outcome, tuple[str, ...]]:
    if bad.alone and context.rank != bad.culprit:
        return Outcome(), ()
    spelling, place = bad.spelled, context
    if context.rank == bad.culprit:
        spelling = spelling if bad.instead is None else SURFACES[bad.surface].spellings[bad.instead]
        place = context if bad.differs is None else context._replace(**dict([_field(bad.differs)]))
    arguments = spelling.good(place)
    if context.rank == bad.culprit:
        arguments |= {change.argument: _made(bad, change, place, arguments) for change in bad.changes}
    state = bad.state if context.rank == bad.culprit else ""

    def made() -> str:
        value = STATES[state](lambda: spelling.made(place, dict(arguments)))
        return RIGHT if state and spelling.is_right(place, value) else _typed(value)

    return _watched(made, arguments)


def _field(differs: tuple[str, Any]) -> tuple[str, Any]:
    name, value = differs
    return name, getattr(torch, value) if name == "dtype" else value


def _made(bad: Bad, change: Any, context: RankContext, arguments: Arguments) -> Any:
    return bad.fault(change).make(context, arguments.get(change.argument), change.drawn)


def _typed(value: Any) -> str:
    return type(value).__name__


def _watched(call: Callable[[], Any], arguments: Arguments) -> tuple[Outcome, tuple[str, ...]]:
    before = {name: _copied(value) for name, value in arguments.items()}
    outcome = attempt(call)
    return outcome, tuple(name for name, value in arguments.items() if not _same(before[name], _copied(value)))


def _copied(value: Any) -> Any:
    """Return the bytes of every array in an argument."""
    if isinstance(value, torch.Tensor):
        plain = value.layout is torch.strided and value.device.type == "cpu" and not value.is_quantized
        plain = plain and value.untyped_storage().nbytes() > 0  # else NumPy would show other memory
        return value.detach().contiguous().view(torch.uint8).numpy().tobytes() if plain and value.dim() else None
    if isinstance(value, np.ndarray):
        return None if value.dtype.hasobject else value.tobytes()
    if isinstance(value, list | tuple):
        return [_copied(part) for part in value]
    return None


def _same(before: Any, after: Any) -> bool:
    return bool(before == after)
