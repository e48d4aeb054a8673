"""Ranks that are threads of this process, in one collshim world that lasts as long as they do."""

from __future__ import annotations

from collections.abc import Sequence
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic

from collshim import options
from collshim.conformance.bindings.rank_context import RankContext
from collshim.conformance.ranks import ENGINE_SECONDS, Reply, Request, Serve, serve
from collshim.world import local_worlds, use


class ThreadRanks:
    """Threads that are ranks of one world, each with a queue of requests that ``serve`` answers."""

    def __init__(self, size: int, prefix: str = "collshim.", *, serve: Serve = serve) -> None:
        self._serve = serve
        with options(timeout=ENGINE_SECONDS):
            self._worlds = local_worlds(size)
        self._requests: list[SimpleQueue[Request]] = [SimpleQueue() for _ in range(size)]
        self._replies: SimpleQueue[tuple[int, Reply]] = SimpleQueue()
        self._threads = [self._start(RankContext(rank, size, prefix)) for rank in range(size)]

    def ask(self, requests: Sequence[Request]) -> None:
        """Send each rank its request."""
        for queue, request in zip(self._requests, requests, strict=True):
            queue.put(request)

    def replies(self, seconds: float) -> list[tuple[int, Reply]]:
        """Return the replies received so far, each with its rank; wait up to ``seconds`` for the first."""
        found: list[tuple[int, Reply]] = []
        end = monotonic() + seconds
        try:
            found.append(self._replies.get(timeout=max(0.0, end - monotonic())))
            while True:
                found.append(self._replies.get_nowait())
        except Empty:
            return found

    def abandon(self, rank: int, why: str) -> None:
        """Release the ranks that wait for ``rank``, which makes no further call."""
        self._worlds.leave(rank, why)

    def close(self, seconds: float) -> list[str]:
        """End the threads and their world; return the names of threads that still run, which cannot be ended."""
        self.ask([None] * len(self._requests))
        self._join(seconds / 2)
        self._worlds.close()
        return self._join(seconds / 2)

    def _start(self, context: RankContext) -> Thread:
        name = f"conformance rank {context.rank} of {context.size}"
        thread = Thread(target=self._run, args=(context,), name=name, daemon=True)
        thread.start()
        return thread

    def _run(self, context: RankContext) -> None:
        def send(reply: Reply) -> None:
            self._replies.put((context.rank, reply))

        with use(self._worlds[context.rank]):
            self._serve(context, self._requests[context.rank].get, send)

    def _join(self, seconds: float) -> list[str]:
        """Wait for the threads; return the names of those that have not ended in time."""
        end = monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, end - monotonic()))
        return [thread.name for thread in self._threads if thread.is_alive()]
