"""What a rank does, whatever it is: answer the cases that it receives, one after the other. It compares nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from collshim.conformance.bindings import find
from collshim.conformance.bindings.answers import Answer, Failure
from collshim.conformance.bindings.rank_context import RankContext
from collshim.conformance.cases import Case

Reply: TypeAlias = "Answer | Failure"
Request: TypeAlias = "tuple[str, Case] | None"  # the name of a binding, and a case; None ends the rank
Serve: TypeAlias = Callable[[RankContext, Callable[[], Any], Callable[[Any], None]], None]  # what a rank does

ADDRESS = "127.0.0.1"
START_SECONDS = 60.0  # for the ranks to find each other
ENGINE_SECONDS = 10.0  # for a wait inside collshim; less than a pool's, so that its error text is seen


def serve(context: RankContext, receive: Callable[[], Request], send: Callable[[Reply], None]) -> None:
    """Answer every request, in order, until None comes."""
    request = receive()
    while request is not None:
        send(reply(context, *request))
        request = receive()


def reply(context: RankContext, name: str, case: Case) -> Reply:
    """The answer to one case through the binding of this name, or what it raised."""
    try:
        return find(name).answer(context, case)
    except Exception as error:
        return Failure.of(error)
