"""The wait that all transports use: in slices, so that ranks learn where the others wait and which have left."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from collshim import processors
from collshim.calls.call import in_the_world
from collshim.errors import add_note

FIRST_SLICE = 0.25
"""After how many seconds a waiting rank reports to the others where it waits."""

LATER_SLICE = 1.0
"""How many seconds pass between later checks of the others."""


def have_processors(ranks: int) -> bool:
    """Return whether this many ranks on this host have a processor each, so that a short wait need not sleep."""
    return ranks <= processors.usable()


def pause(quiet: float, least: float, longest: float) -> float:
    """Return the seconds until the next check for something that has not happened for ``quiet`` seconds.

    That is a sixteenth of them: the check is late by little, and a long wait takes little processor time.
    """
    return max(least, min(quiet / 16, longest))


_LONGEST_CHAIN = 8
"""How many steps an error text follows from one waiting rank to the next."""


class Watched:
    """The interface that ``watch`` polls."""

    def report(self) -> None:
        """Report to the others that this rank waits here, if they cannot see it."""

    def clear(self) -> None:
        """Withdraw the report."""

    def check(self) -> None:
        """Raise an error if the wait can no longer succeed."""

    def describe(self) -> str:
        """Describe the wait and the missing ranks, for a person who interrupts it; empty if unknown."""
        return ""

    def expire(self) -> float | None:
        """Handle the deadline: raise an error, end the wait, or return a new deadline.

        None waits without a deadline, if completion is only a matter of time.
        """
        raise NotImplementedError


def watch(
    watched: Watched,
    over: Callable[[float], bool],
    limit: float | None,
    *,
    first: float = FIRST_SLICE,
    later: float = LATER_SLICE,
    now: Callable[[], float] = time.monotonic,
) -> None:
    """Wait until ``over(seconds)``, which itself waits, is true; ``limit`` is a time of ``now``."""
    seconds, reported = first, False
    try:
        while not over(seconds if limit is None else max(0.001, min(seconds, limit - now()))):
            reported = True
            watched.report()  # before the deadline is checked: ranks that gave up wait for the report
            if limit is not None and now() >= limit:
                limit = watched.expire()
            watched.check()
            seconds = later
    except KeyboardInterrupt as interrupt:
        add_note(interrupt, watched.describe())
        raise
    finally:
        if reported:
            watched.clear()


def chain_of(
    absent: Sequence[int],
    awaited: Callable[[int], Sequence[int]],
    whereabouts: Callable[[int], str],
    own: int,
    ranks: Sequence[int],
) -> str:
    """Say which ranks the absent ranks wait for, and so on: the cause of a deadlock, by ranks of the world.

    Args:
        absent: the missing ranks, which the text already names; ``own`` is the rank that reports them.
        awaited: returns the ranks that a rank waits for.
        whereabouts: says where a rank is.
        ranks: the group's ranks; numbers are marked as the world's if the group's differ.
    """
    seen, left, texts = {*absent, own}, list(absent), list[str]()
    world = "" if tuple(ranks) == tuple(range(len(ranks))) else " of the world"
    while left and len(texts) < _LONGEST_CHAIN:
        rank = left.pop(0)
        for other in awaited(rank):
            if other == own:
                texts.append(f"rank {rank}{world} waits for rank {own}{world}")
            elif other not in seen:
                seen.add(other)
                left.append(other)
                texts.append(f"rank {rank}{world} waits for rank {other}{world}, which {whereabouts(other)}")
    return "".join(f"; {text}" for text in texts[:_LONGEST_CHAIN])


def missing_text(
    call: str, absent: Sequence[tuple[int, str]], present: Sequence[tuple[int, str]], ranks: Sequence[int]
) -> str:
    """Return the error text of a wait: the absent ranks of a group and where each is, and the present ranks' calls.

    ``ranks`` are the group's ranks in the world.
    """
    details = [f"rank {rank} {where}" for rank, where in absent]
    if len({text for _, text in present}) > 1:  # the present ranks' calls might be the cause
        details += [f"rank {rank} arrived with {text}" for rank, text in present]
    if not absent:
        differ = f", with calls that differ: {'; '.join(details)}" if details else ", and the data did not move"
        return f"{call}: all arrived{differ}"
    return f"{call}: {len(absent)} of {len(ranks)} ranks did not arrive: {'; '.join(details)}{in_the_world(ranks)}"
