"""States in which a call is bad, whatever its arguments."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from collshim.world import local_worlds, use

JOIN_SECONDS = 20.0


def _in_a_world_not_entered(call: Callable[[], Any]) -> Any:
    """Call in a world in which the framework's init was not called."""
    with local_worlds(1) as worlds, use(worlds[0]):
        return call()


def _in_a_strange_thread(call: Callable[[], Any]) -> Any:
    """Call in a thread that is not a rank, while ranks are threads."""
    found: list[Any] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            found.append(call())
        except Exception as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(JOIN_SECONDS)
    if raised:
        raise raised[0]
    return found.pop() if found else "nothing, it did not return"


STATES: Mapping[str, Callable[[Callable[[], Any]], Any]] = {
    "": lambda call: call(),
    "a world not entered": _in_a_world_not_entered,
    "a strange thread": _in_a_strange_thread,
}
