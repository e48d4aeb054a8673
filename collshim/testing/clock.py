"""Lets a test's ranks sleep by the clock of their world."""

from __future__ import annotations

import time

from collshim.transports.threads.transport import ThreadTransport
from collshim.world import peek


def sleep(seconds: float) -> None:
    """Sleep on this rank, by the clock of its world.

    With ``clock="jumping"`` this takes no time if all other ranks wait for calls that cannot start, or sleep too. With
    the system's clock, and outside a world, it is ``time.sleep``.

    Examples:
        >>> import collshim, torch
        >>> def late():
        ...     if collshim.current().rank == 0:
        ...         sleep(3600.0)
        ...     return collshim.current().communicator.all_reduce(torch.ones(1)).wait(7200.0).item()
        >>> with collshim.options(clock="jumping"):
        ...     collshim.launch(late, 2)
        [2.0, 2.0]

    Args:
        seconds: how long the rank sleeps.
    """
    own = peek()
    transport = None if own is None else own.communicator._transport
    if not isinstance(transport, ThreadTransport) or transport.group.world.clock is None:
        time.sleep(seconds)
    else:
        transport.group.world.clock.sleep(transport.group.ranks[transport.rank], seconds)
