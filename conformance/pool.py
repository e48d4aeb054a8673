"""Ranks that stay up. Cases are drawn and answers compared outside the ranks, which only compute.

Therefore a test does not hang if a rank does, and hypothesis can run, fail and shrink as with any function. A pool
whose ranks may be out of step is replaced before the next case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import monotonic
from typing import Protocol

from collshim.conformance.bindings.answers import Failure
from collshim.conformance.bindings.binding import Binding
from collshim.conformance.cases import Case
from collshim.conformance.process_ranks import ProcessRanks
from collshim.conformance.ranks import Reply, Request
from collshim.conformance.thread_ranks import ThreadRanks

ANSWER_SECONDS = 80.0  # for all ranks to start and to answer one case
GRACE_SECONDS = 2.0  # for the other ranks to answer after one has failed
RELEASED_SECONDS = 10.0  # for ranks to answer once the one that they wait for is gone, on a busy machine
END_SECONDS = 10.0  # for ranks to end


class StillRunningError(RuntimeError):
    """Raised if ranks' threads are stuck in a call that does not return; they end with the process."""


class Ranks(Protocol):
    """The interface of a pool's ranks."""

    def ask(self, requests: Sequence[Request]) -> None:
        """Send each rank its request."""

    def replies(self, seconds: float) -> list[tuple[int, Reply]]:
        """Return the replies received so far, each with its rank; wait up to ``seconds`` for the first."""
        ...

    def abandon(self, rank: int, why: str) -> None:
        """Release the ranks that wait for ``rank``, which makes no further call."""

    def close(self, seconds: float) -> list[str]:
        """End the ranks within ``seconds``; return the names of those still running. May be called again."""
        ...


Start = Callable[[int, str], Ranks]  # takes the number of ranks, and the prefix of their functions
TRANSPORTS: Mapping[str, Start] = {
    "threads": ThreadRanks,
    "processes": ProcessRanks,
    "unchecked": partial(ProcessRanks, checks=False),
}


class Pool:
    """A number of live ranks.

    Attributes:
        transport: "threads", "processes", or "unchecked" for processes that do not compare their calls.
        size: the number of ranks.
        replaced: how often the ranks were replaced.
    """

    def __init__(
        self,
        transport: str,
        size: int,
        prefix: str = "collshim.",
        seconds: float = ANSWER_SECONDS,
        start: Start | None = None,
    ) -> None:
        self.transport = transport
        self.size = size
        self.replaced = 0
        self._prefix = prefix
        self._seconds = seconds
        self._start = start or TRANSPORTS[transport]
        self._ranks: Ranks | None = None
        self._stuck: list[Ranks] = []

    def run(self, bindings: Sequence[Binding], case: Case) -> list[Reply]:
        """Return the answer of each rank of the world to ``case``; rank r uses the r-th binding.

        If a rank does not answer in time, its answer is a ``Failure`` of class NoAnswer, and the ranks are replaced.
        """
        if self._ranks is None:
            self._ranks = self._start(self.size, self._prefix)
        self._ranks.ask([(binding.name, case) for binding in bindings])
        answers = self._gather(self._ranks)
        if _out_of_step(answers, case):
            self.replaced += 1
            self._discard(GRACE_SECONDS)
        return answers

    def dismiss(self) -> None:
        """Ask the ranks to end; ``close`` waits for them."""
        if self._ranks is not None:
            self._ranks.ask([None] * self.size)

    def close(self) -> None:
        """End the ranks; a later ``run`` starts new ones.

        Raises:
            StillRunningError: some ranks of this pool still run and cannot be ended.
        """
        self._discard(END_SECONDS)
        left = [name for ranks in self._stuck for name in ranks.close(END_SECONDS)]
        self._stuck.clear()
        if left:
            raise StillRunningError(f"{', '.join(dict.fromkeys(left))} still run, should have ended")

    def _discard(self, seconds: float) -> None:
        ranks, self._ranks = self._ranks, None
        if ranks is not None and ranks.close(seconds):
            self._stuck.append(ranks)

    def _gather(self, ranks: Ranks) -> list[Reply]:
        found: dict[int, Reply] = {}
        end = monotonic() + self._seconds
        while len(found) < self.size and monotonic() < end:
            arrived = ranks.replies(max(0.0, end - monotonic()))
            found.update(arrived)
            if any(isinstance(answer, Failure) for _, answer in arrived):
                end = min(end, monotonic() + GRACE_SECONDS)
        return self._complete(ranks, found)

    def _complete(self, ranks: Ranks, found: dict[int, Reply]) -> list[Reply]:
        """Complete the replies by rank; ranks that wait for one that has replied raise."""
        for rank in list(found) if len(found) < self.size else ():
            ranks.abandon(rank, "has answered and makes no further call of this case")
        end = monotonic() + RELEASED_SECONDS
        while len(found) < self.size and monotonic() < end:
            found = dict(ranks.replies(max(0.0, end - monotonic()))) | found
        return [found.get(rank) or self._no_answer(rank) for rank in range(self.size)]

    def _no_answer(self, rank: int) -> Failure:
        return Failure(("NoAnswer",), f"rank {rank} of {self.size} did not answer in time ({self._seconds:g} s)")


def _out_of_step(answers: Sequence[Reply], case: Case) -> bool:
    """Return whether the ranks may be out of step; they are in step if all of them failed, or none."""
    failures = [answers[rank] for rank in case.ranks if isinstance(answers[rank], Failure)]
    unsafe = {"CommunicationError", "WorldError", "NoAnswer", "ProcessEnded"}
    broken = any(unsafe & set(answer.classes) for answer in answers if isinstance(answer, Failure))
    return broken or 0 < len(failures) < len(case.ranks)


class Pools:
    """A pool for each transport and size, started on first use.

    Attributes:
        prefix: where the ranks find functions; see ``places``.
    """

    def __init__(
        self,
        prefix: str = "collshim.",
        transports: Mapping[str, Start] = TRANSPORTS,
        seconds: float = ANSWER_SECONDS,
    ) -> None:
        self.prefix = prefix
        self._transports = transports
        self._seconds = seconds
        self._pools: dict[tuple[str, int], Pool] = {}

    def of(self, transport: str, size: int) -> Pool:
        """Return the pool of this transport and size."""
        if (transport, size) not in self._pools:
            start = self._transports[transport]
            self._pools[transport, size] = Pool(transport, size, self.prefix, self._seconds, start)
        return self._pools[transport, size]

    def close(self) -> None:
        """End every pool.

        Raises:
            StillRunningError: some ranks still run and cannot be ended.
        """
        for pool in self._pools.values():
            pool.dismiss()
        left: list[str] = []
        while self._pools:
            try:
                self._pools.popitem()[1].close()
            except StillRunningError as error:
                left.append(str(error))
        if left:
            raise StillRunningError("; ".join(left))
