"""End a process's side of a group: by a failure, by its program, by the garbage collector, or with the process."""

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
from collshim.transports.dropping import DROPPED, ending_thread, free, never_free, pause
from collshim.transports.matching import warn_of
from collshim.transports.processes.exchange import Exchange
from collshim.transports.processes.messages import Messages
from collshim.transports.processes.nccl.group import end_nccl
from collshim.transports.processes.nccl.launches import Launches
from collshim.transports.processes.process_groups import ProcessGroups
from collshim.transports.rendezvous.stalls import StallInspector, keys_of
from collshim.transports.rendezvous.world import ProcessWorld
from collshim.transports.shared_memory.group import SharedMemory
from collshim.transports.waiting import FIRST_SLICE
from collshim.work import DeferredErrors

_PAUSE = 0.001
"""Seconds between two checks of whether NCCL has finished, while a group is closed."""


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
    data_group: Any = None
    gpu_port: Any = None
    shared: SharedMemory | None = None
    _messages: Messages
    _queue: deque[Exchange]
    _ending: threading.Lock
    _failure: CommunicationError | None
    _is_open = _is_closed = _is_ending = False
    _afterwards: list[Callable[[], None]]
    _fingerprint_group: Any = None
    _data_backend: Any = None
    _fingerprint_backend: Any = None
    _latest_fingerprints: Any

    def advance(self) -> bool:
        """See ``Group``."""
        raise NotImplementedError

    def end(self, kind: type[CommunicationError], text: str) -> CommunicationError:
        """End this group on all ranks; return the failure to raise: the one that a rank reported first."""
        name, first_text = self.stalls.end(self.key, kind.__name__, text)
        failure = (DeadlineError if name == DeadlineError.__name__ else PeerError)(first_text)
        self.break_(failure)
        return failure

    def break_(self, failure: CollshimError) -> None:
        """End this group: calls under way and later calls fail with ``failure``."""
        if self._failure is None:
            broken_by = failure if isinstance(failure, CommunicationError) else CommunicationError(str(failure))
            self._keep_untold(broken_by)
            self._failure = broken_by
            if self.shared is not None:
                self.shared.end()
        broken_by = self._failure
        self._fail_queued(lambda call: broken_by)
        if self.launches.fail(broken_by):
            LOG.error("calls on the GPU were aborted, and their outputs must not be used: %s", broken_by)
        self._messages.fail(broken_by)
        self._let_go()

    def _keep_untold(self, failure: CollshimError) -> None:
        """If NCCL is used, keep the failure: the program might take a call that ends with the group for complete."""
        if self.launches.are_used:
            self.world.untold.add(self.key, failure)

    def note_reported(self) -> None:
        """See ``Group``."""
        if self._failure is not None:
            self.world.untold.discard(self.key)

    def _fail_queued(self, failure: Callable[[Call], CollshimError]) -> None:
        """Fail the queued calls. The queue is replaced, so the thread that processes it needs no guard against this."""
        queue, self._queue = self._queue, deque()
        for exchange in queue:
            exchange.fail(failure(exchange.call))

    def refuse_if_broken(self) -> None:
        """Raise an error if an earlier failure ended this group."""
        if self._failure is not None:
            self.note_reported()
            raise BrokenCommunicatorError(f"this communicator was ended by an earlier failure: {self._failure}")

    def is_usable(self) -> bool:
        """Return whether the group has neither failed nor been closed."""
        return self._failure is None

    def leaks(self) -> list[str]:
        """Describe the calls and messages that this group leaves unfinished, if it did not fail."""
        return self._messages.leaks() if self._failure is None else []

    def await_gpu(self) -> None:
        """Wait until all calls passed to NCCL are over, or were aborted at their deadline."""
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
        finally:  # a warning about leaks might be an error
            self.world.untold.raise_of(self.key)

    def _close(self) -> None:
        self._is_closed = True
        self.await_gpu()
        leaks = self.leaks()
        if self._failure is None:
            self.launches.tell()  # before the close is known: others then expect no more calls from this rank
            self.stalls.close(self.key, self.sequence)
        self._failure = self._failure or BrokenCommunicatorError("it was destroyed")
        self._fail_queued(lambda call: BrokenCommunicatorError(f"{call}: this communicator was destroyed meanwhile"))
        self.deferred.clear()
        self._messages.close()
        more = [*keys_of(self.key, self.ranks), *self.launches.keys()]
        ending = self._let_go(partial(self.world.left, self.key, self.size, more))
        if ending is not None and self.launches.are_used:
            ending.join(FIRST_SLICE)  # not for longer: other ranks might close this group later, after another one
        warn_of(leaks, f"group {self.key}")

    def drop(self) -> None:
        """See ``Transport.drop``; no warning says that it was never closed, however late the thread runs."""
        self.made_at = ""
        DROPPED.drop(self._close_when_over)

    def _close_when_over(self) -> None:
        limit = time.monotonic() + self.world.timeout
        while self.advance() and time.monotonic() < limit:
            pause(0.01)
        if not self._is_closed:
            self._close()  # if the program has not seen a failure, the world reports it

    def abandon(self) -> None:
        """Prepare for the destructors at the end of the process, or prevent them; see ``ProcessWorld.abandon``."""
        if not self._is_idle():
            never_free(self._groups())
        elif self.data_group is not None:
            self._end_unused_nccl(self.data_group)

    def __del__(
        self,
        is_ending: Callable[[], bool] = sys.is_finalizing,  # at the end of the process, modules have lost their names
        never_free: Callable[[list[Any]], None] = never_free,
    ) -> None:
        if self._is_open:
            never_free(self._groups()) if is_ending() else self.drop()

    def _let_go(self, then: Callable[[], None] = lambda: None) -> threading.Thread | None:
        """Drop the ProcessGroups as soon as that is safe: now, or else in a thread, which this returns.

        Dropping a ProcessGroup runs its destructor, which must not happen in three situations, and none of them may
        hold up the caller:

        - gloo still has calls of the group: the destructor would wait for them without the GIL.
        - Another rank is still making the group: gloo connects all pairs of ranks, and fails if one of them goes away.
        - NCCL was used and has not failed: ending it can wait for the other ranks, which might end their groups in
          another order, or only once the garbage collector finds them.

        ``then`` is called after the drop, never before it: the last rank that leaves the group deletes the keys in the
        store that show whether every rank has made it.
        """
        with self._ending:  # a caller that closes and the thread that watches NCCL can both get here: only one drops
            groups = self._groups()
            if self.shared is not None:
                self.shared.close()
            self._is_open = False
            self.data_group = self.gpu_port = self._fingerprint_group = None
            self._data_backend = self._fingerprint_backend = None
            self._afterwards.append(then)
            self._is_ending = self._is_ending or bool(groups)
        if not groups:
            if not self._is_ending:
                self._run_afterwards()
            return None
        has_failed = not isinstance(self._failure, BrokenCommunicatorError | type(None))
        is_nccl_left = self.launches.are_used and not has_failed
        if self.launches.are_used and has_failed:
            end_nccl(groups[0], failed=True)
        if not is_nccl_left and self._is_idle() and self._is_made():
            self._free(groups)
            self._run_afterwards()
            return None
        self.groups.ending.append(groups)
        ending = ending_thread([partial(self._drop, groups, is_nccl_left)])
        if is_nccl_left:
            self.groups.ending_nccl[ending] = groups[0]
        ending.start()
        return ending

    def _free(self, groups: list[ProcessGroup]) -> None:
        """Run the destructors."""
        free(groups, before=lambda: self._end_unused_nccl(groups[0]))  # a partial's own reference would outlive them

    def _end_unused_nccl(self, group: ProcessGroup) -> None:
        """Shut down an NCCL without a communicator, whose destructor would warn that the program did not."""
        if not self.launches.are_used:
            end_nccl(group, failed=False)

    def _groups(self) -> list[Any]:
        """Return the objects that torch's destructors free, the group of the data first, gloo's backends last.

        The backends are kept here until then, since their own destructors release the GIL. Until torch 2.7, a group's
        destructor, which ends its backends, does not: it could wait for a thread of gloo that waits for the GIL.
        """
        groups = self.data_group, self._fingerprint_group, self._data_backend, self._fingerprint_backend
        return [group for group in dict.fromkeys(groups) if group is not None]

    def _is_idle(self) -> bool:
        works = self.latest, self._latest_fingerprints
        return all(work is None or work.is_completed() for work in works) and self.launches.are_over()

    def _is_made(self) -> bool:
        """Return whether every rank has made the group, or the store is gone."""
        return self.world.is_made(self.key, self.size)

    def _run_afterwards(self) -> None:
        with self._ending:
            self._is_ending, afterwards = False, self._afterwards
            self._afterwards = []
        for then in afterwards:
            then()

    def _drop(self, groups: list[ProcessGroup], is_nccl_left: bool) -> None:
        limit = time.monotonic() + self.world.timeout
        if is_nccl_left:
            while not self.launches.are_over() and time.monotonic() < limit:
                pause(0.01)
            end_nccl(groups[0], failed=not self.launches.are_over())
            self.groups.ending_nccl.pop(threading.current_thread(), None)
        while not (self._is_made() and self._is_idle()) and time.monotonic() < limit:
            pause(0.01)
        if not self._is_idle():  # the destructor would wait until gloo gives the calls up
            never_free(groups)
        self._free(groups)
        self.groups.ending.remove(groups)
        self._run_afterwards()
