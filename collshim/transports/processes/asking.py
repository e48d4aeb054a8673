"""What the processes of a world ask each other, for error texts: which line of the program each of them runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress

from collshim.transports.processes.connections import Connections


def activities(connections: Connections, ranks: Sequence[int], seconds: float) -> dict[int, str]:
    """What each of these ranks does, in words, or that its process has ended; waits for at most so many seconds.

    Empty before the ranks know where they listen; without those that answer that they have nothing to say.
    """
    asked, limit = dict[int, int](), time.monotonic() + seconds
    for rank in ranks:
        with suppress(OSError):  # which ``end_of`` says
            if (number := connections.ask(rank)) is not None:
                asked[rank] = number
    answers = connections.answers

    def is_over() -> bool:
        return all(number in answers or connections.end_of(rank) for rank, number in asked.items())

    while not connections.wait(is_over, max(0.0, limit - time.monotonic())) and time.monotonic() < limit:
        pass
    told = {rank: answers.pop(asked.get(rank, 0), None) for rank in ranks}
    found = {rank: _silence(connections, rank, seconds) if text is None else text for rank, text in told.items()}
    return {rank: text for rank, text in found.items() if text}


def _silence(connections: Connections, rank: int, seconds: float) -> str:
    if not connections.addresses:
        return ""
    place = "{}:{}".format(*connections.addresses[rank])
    end = connections.end_of(rank)
    if end:
        return f"has ended: its process at {place} is gone ({end})"
    return f"has not answered at {place} for {seconds:g} s: its process is stopped, or busy in native code"
