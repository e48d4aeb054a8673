"""What a rank of any kind does: it answers the cases that it receives, one after the other, and compares nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from collshim.conformance.bindings import find
from collshim.conformance.bindings.answers import Answer, Failure
from collshim.conformance.bindings.rank_context import RankContext
from collshim.conformance.cases import Case

Reply: TypeAlias = "Answer | Failure"
Request: TypeAlias = "tuple[str, Case] | None"  # the name of a binding, and a case; None ends the rank
Serve: TypeAlias = Callable[[RankContext, Callable[[], Any], Callable[[Any], None]], None]  # the work of a rank

ADDRESS = "127.0.0.1"
START_SECONDS = 60.0  # for the ranks to find each other
ENGINE_SECONDS = 10.0  # for a wait inside collshim; shorter than a pool's, so that the engine's error is reported


def serve(context: RankContext, receive: Callable[[], Request], send: Callable[[Reply], None]) -> None:
    """Answer every request in order until None arrives."""
    request = receive()
    while request is not None:
        send(reply(context, *request))
        request = receive()


def reply(context: RankContext, name: str, case: Case) -> Reply:
    """Return the answer to one case through the binding of this name, or the exception that it raised."""
    try:
        return find(name).answer(context, case)
    except Exception as error:
        return Failure.of(error)
