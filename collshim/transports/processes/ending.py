"""How a process's end of a group ends: by a failure, by its program, by the collector, or with the process."""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from torch.distributed import ProcessGroup

from collshim.calls.call import Call
from collshim.errors import BrokenCommunicatorError, CollshimError, CommunicationError, DeadlineError, PeerError
from collshim.log import LOG
from collshim.transports.dropping import DROPPED, free, never_free
from collshim.transports.matching import warn_of
from collshim.transports.processes.exchange import Exchange
from collshim.transports.processes.messages import Messages
from collshim.transports.processes.nccl.group import end_nccl
from collshim.transports.processes.nccl.launches import Launches
from collshim.transports.processes.process_groups import ProcessGroups
from collshim.transports.rendezvous.stalls import StallInspector, keys_of
from collshim.transports.rendezvous.world import ProcessWorld
from collshim.transports.waiting import FIRST_SLICE
from collshim.work import DeferredErrors

_PAUSE = 0.001
"""Seconds between two looks whether NCCL is done, where a group is closed."""


class GroupEnd:
    """The part of a ``ProcessTransport`` that ends it; see there for the attributes."""

    groups: ProcessGroups
    world: ProcessWorld
    stalls: StallInspector
    key: str
    size: int
    ranks: tuple[int, ...]
    sequence: int
    made_at = ""
    nccl_options: Any = None
    deferred: DeferredErrors
    launches: Launches
    latest: Any
    data_group: Any
    gpu_port: Any = None
    _messages: Messages
    _queue: deque[Exchange]
    _ending: threading.Lock
    _failure: CommunicationError | None
    _is_closed = _is_ending = False
    _afterwards: list[Callable[[], None]]
    _fingerprint_group: Any
    _fingerprint_backend: Any
    _latest_fingerprints: Any

    def advance(self) -> bool:
        """See ``Group``."""
        raise NotImplementedError

    def end(self, kind: type[CommunicationError], text: str) -> CommunicationError:
        """End this group on all ranks; the failure to raise, which is that of the rank that found out first."""
        name, first_text = self.stalls.end(self.key, kind.__name__, text)
        failure = (DeadlineError if name == DeadlineError.__name__ else PeerError)(first_text)
        self.break_(failure)
        return failure

    def break_(self, failure: CollshimError) -> None:
        """End this group: what is on its way, and what comes later, fails with ``failure``."""
        if self._failure is None:
            broken_by = failure if isinstance(failure, CommunicationError) else CommunicationError(str(failure))
            self._keep_untold(broken_by)
            self._failure = broken_by
        broken_by = self._failure
        self._fail_queued(lambda call: broken_by)
        if self.launches.fail(broken_by):
            LOG.error("calls on the GPU were aborted, and what they were to write must not be used: %s", broken_by)
        self._messages.fail(broken_by)
        self._let_go()

    def _keep_untold(self, failure: CollshimError) -> None:
        """If NCCL is used, the program may have taken a call for done that ends with the group."""
        if self.launches.are_used:
            self.world.untold.add(self.key, failure)

    def was_told(self) -> None:
        """See ``Group``."""
        if self._failure is not None:
            self.world.untold.told(self.key)

    def _fail_queued(self, failure: Callable[[Call], CollshimError]) -> None:
        """In place of a shorter queue a new one: the thread that works off the old one needs no guard against it."""
        queue, self._queue = self._queue, deque()
        for exchange in queue:
            exchange.fail(failure(exchange.call))

    def refuse_if_broken(self) -> None:
        """Raise where an earlier failure ended this group."""
        if self._failure is not None:
            self.was_told()
            raise BrokenCommunicatorError(f"this communicator was ended by an earlier failure: {self._failure}")

    def is_usable(self) -> bool:
        """Whether it has neither failed nor been closed."""
        return self._failure is None

    def leaks(self) -> list[str]:
        """What is left of this group that did not fail."""
        return self._messages.leaks() if self._failure is None else []

    def await_gpu(self) -> None:
        """Wait until what NCCL was given is over, or is given up at its deadline."""
        while self._failure is None and not self.launches.are_over():
            time.sleep(_PAUSE)

    def settle(self) -> None:
        """See ``Transport.settle``."""
        self.await_gpu()
        self.world.untold.raise_of(self.key)

    def close(self) -> None:
        """See ``Transport.close``."""
        try:
            if not self._is_closed:
                self._close()
        finally:  # a warning of what is left may be an error
            self.world.untold.raise_of(self.key)

    def _close(self) -> None:
        self._is_closed = True
        self.await_gpu()
        leaks = self.leaks()
        if self._failure is None:
            self.launches.tell()  # first: a rank that has closed comes to no other call
            self.stalls.close(self.key, self.sequence)
        self._failure = self._failure or BrokenCommunicatorError("it was destroyed")
        self._fail_queued(lambda call: BrokenCommunicatorError(f"{call}: this communicator was destroyed meanwhile"))
        self.deferred.clear()
        self._messages.close()
        more = [*keys_of(self.key, self.ranks), *self.launches.keys()]
        ending = self._let_go(partial(self.world.left, self.key, self.size, more))
        if ending is not None and self.launches.are_used:
            ending.join(FIRST_SLICE)  # no longer: the other ranks may close this group later, behind another one
        warn_of(leaks, f"group {self.key}")

    def drop(self) -> None:
        """See ``Transport.drop``; no warning says that it was never closed, however late the thread is."""
        self.made_at = ""
        DROPPED.drop(self._close_when_over)

    def _close_when_over(self) -> None:
        limit = time.monotonic() + self.world.timeout
        while self.advance() and time.monotonic() < limit:
            time.sleep(0.01)
        if not self._is_closed:
            self._close()  # the world tells of a failure that the program was not told of

    def abandon(self) -> None:
        """The process ends: see ``ProcessWorld.abandon``."""
        if not self._is_idle():
            never_free(self._groups())

    def __del__(self) -> None:
        if getattr(self, "_fingerprint_group", None) is not None:
            never_free(self._groups()) if sys.is_finalizing() else self.drop()

    def _let_go(self, then: Callable[[], None] = lambda: None) -> threading.Thread | None:
        """Drop the groups, once gloo has ended their calls, however long that takes; where some are left, in a thread.

        In a thread too where another rank still makes the group: gloo makes it of connections between all pairs of
        ranks, and fails where one of them ends meanwhile. And where NCCL was used: its end may wait for the other
        ranks, which may end their groups in another order, or now be told to by the collector. ``then`` is called at
        the end: not before, since the last rank that has left the group clears the store of what says whether it is
        made.
        """
        with self._ending:  # of two threads, a caller's that closes and the one that watches NCCL, one ends them
            groups = self._groups()
            self.data_group = self.gpu_port = self._fingerprint_group = self._fingerprint_backend = None
            self._afterwards.append(then)
            self._is_ending = self._is_ending or bool(groups)
        if not groups:
            if not self._is_ending:
                self._ended()
            return None
        has_failed = not isinstance(self._failure, BrokenCommunicatorError | type(None))
        is_nccl_left = self.launches.are_used and not has_failed
        if self.launches.are_used and has_failed:
            end_nccl(groups[0], failed=True)
        if not is_nccl_left and self._is_idle() and self._is_made():
            free(groups)
            self._ended()
            return None
        self.groups.ending.append(groups)
        arguments = groups, is_nccl_left
        ending = threading.Thread(target=self._drop, args=arguments, name="collshim-ending", daemon=True)
        if is_nccl_left:
            self.groups.ending_nccl[ending] = groups[0]
        ending.start()
        return ending

    def _groups(self) -> list[ProcessGroup]:
        return [group for group in (self.data_group, self._fingerprint_group) if group is not None]

    def _is_idle(self) -> bool:
        works = self.latest, self._latest_fingerprints
        return all(work is None or work.is_completed() for work in works) and self.launches.are_over()

    def _is_made(self) -> bool:
        """Whether every rank has made the group, or the store is gone."""
        return self.world.is_made(self.key, self.size)

    def _ended(self) -> None:
        with self._ending:
            self._is_ending, afterwards = False, self._afterwards
            self._afterwards = []
        for then in afterwards:
            then()

    def _drop(self, groups: list[ProcessGroup], is_nccl_left: bool) -> None:
        limit = time.monotonic() + self.world.timeout
        if is_nccl_left:
            while not self.launches.are_over() and time.monotonic() < limit:
                time.sleep(0.01)
            end_nccl(groups[0], failed=not self.launches.are_over())
            self.groups.ending_nccl.pop(threading.current_thread(), None)
        while not (self._is_made() and self._is_idle()) and time.monotonic() < limit:
            time.sleep(0.01)
        if not self._is_idle():  # torch 2.6 waits in the destructor, and no other thread runs meanwhile
            never_free(groups)
        free(groups)
        self.groups.ending.remove(groups)
        self._ended()
