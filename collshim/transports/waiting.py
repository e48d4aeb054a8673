"""One wait for all transports: in slices, so that ranks learn where the others wait, and which have left."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from collshim.calls.call import in_the_world
from collshim.errors import add_note

FIRST_SLICE = 0.25
"""Seconds after which a waiting rank tells the others where it waits."""

LATER_SLICE = 1.0
"""Seconds between later looks at the others."""


_LONGEST_CHAIN = 8
"""Ranks that an error text follows from one to the next."""


class Watched:
    """What a rank waits for, as far as a wait need know."""

    def tell(self) -> None:
        """Tell the others that this rank waits here, where they cannot see it."""

    def clear(self) -> None:
        """Tell the others that it waits no longer, after ``tell``."""

    def look(self) -> None:
        """Raise where nothing can come of it any more."""

    def whom(self) -> str:
        """What is waited for and which ranks are missing, for a person who interrupts the wait; empty if unknown."""
        return ""

    def expire(self) -> float | None:
        """The deadline has passed: raise, or let what is waited for be over, or give it until another time.

        None is for what can only be a matter of time.
        """
        raise NotImplementedError


def watch(
    watched: Watched,
    over: Callable[[float], bool],
    limit: float | None,
    *,
    first: float = FIRST_SLICE,
    later: float = LATER_SLICE,
) -> None:
    """Wait until ``over``, which waits for that many seconds itself; ``limit`` is a time of ``time.monotonic``."""
    seconds, has_told = first, False
    try:
        while not over(seconds if limit is None else max(0.001, min(seconds, limit - time.monotonic()))):
            has_told = True
            watched.tell()  # first: ranks that gave up wait for it
            if limit is not None and time.monotonic() >= limit:
                limit = watched.expire()
            watched.look()
            seconds = later
    except KeyboardInterrupt as interrupt:
        add_note(interrupt, watched.whom())
        raise
    finally:
        if has_told:
            watched.clear()


def chain_of(
    absent: Sequence[int],
    awaited: Callable[[int], Sequence[int]],
    whereabouts: Callable[[int], str],
    own: int,
    ranks: Sequence[int],
) -> str:
    """Whom the absent ranks wait for themselves, and these in turn: the cause of a deadlock, by ranks of the world.

    Args:
        absent: the ranks that are missing, which the text has already; ``own`` is the one that found out.
        awaited: the ranks that a rank waits for.
        whereabouts: where a rank is.
        ranks: those of the group; a number of the world is marked where the group has others.
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
    """The error text of a wait: the absent ranks of a group, each with where it is, and the present ones' calls.

    ``ranks`` are the group's ranks in the world.
    """
    details = [f"rank {rank} {where}" for rank, where in absent]
    if len({text for _, text in present}) > 1:  # the cause may be in the present ranks' calls
        details += [f"rank {rank} came with {text}" for rank, text in present]
    if not absent:
        differ = f", with calls that differ: {'; '.join(details)}" if details else ", and the data did not move"
        return f"{call}: all came{differ}"
    return f"{call}: {len(absent)} of {len(ranks)} ranks did not come: {'; '.join(details)}{in_the_world(ranks)}"
