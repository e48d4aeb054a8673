"""Ranks that stay up and get requests from outside: one that hangs or dies is a failure, and does not end the tests."""

from __future__ import annotations

from time import monotonic
from typing import Any

import collshim
from collshim.conformance.bindings.answers import Failure
from collshim.conformance.process_ranks import ProcessRanks
from collshim.conformance.thread_ranks import ThreadRanks
from tests.robustness.context import SIZE
from tests.robustness.drawing import Bad
from tests.robustness.rank import Reply, serve

ANSWER_SECONDS = 50.0
END_SECONDS = 10.0
FORCE_SECONDS = 1.0


class Pool:
    """Live ranks of one transport; started at the first request, and again after a failure."""

    def __init__(self, transport: str) -> None:
        self._start: Any = ThreadRanks if transport == "threads" else ProcessRanks
        self._live: Any = None

    def ask(self, bad: Bad) -> list[Reply]:
        """Return the observation of every rank of the group, in its order.

        Raises:
            RuntimeError: ranks did not answer in time, or ended.
        """
        if self._live is None:
            with collshim.options(check=True):
                self._live = self._start(SIZE, serve=serve)
        self._live.ask([bad] * SIZE)
        try:
            return self._replies()
        except BaseException:
            self.discard()
            raise

    def _replies(self) -> list[Reply]:
        found: dict[int, Reply] = {}
        end = monotonic() + ANSWER_SECONDS
        while len(found) < SIZE:
            arrived = self._live.replies(max(0.0, end - monotonic()))
            failures = [f"rank {rank}: {reply.message}" for rank, reply in arrived if isinstance(reply, Failure)]
            if failures or not arrived:
                missing = sorted({*range(SIZE)} - found.keys())
                raise RuntimeError("; ".join(failures) or f"ranks {missing} did not answer, the others: {found}")
            found.update(arrived)
        return [found[rank] for rank in range(SIZE)]

    def close(self, seconds: float = END_SECONDS) -> None:
        """End the ranks."""
        live, self._live = self._live, None
        if live is not None:
            live.close(seconds)

    def discard(self) -> None:
        """End ranks that may be out of step; the next request starts new ones."""
        self.close(FORCE_SECONDS)
