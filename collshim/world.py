"""This rank's world: its ranks, and the communicator of all of them.

A rank is a thread or a process. A thread's own world takes precedence over the process's. The process's world is made
by ``init``, or from the launcher's environment when it is first needed; without a launcher it is a single rank.
"""

from __future__ import annotations

import atexit
import itertools
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakMethod

from torch.distributed import HashStore

from collshim import exit_status
from collshim.calls.site import activity_of, how_it_failed
from collshim.communicator import Communicator
from collshim.environment import LaunchedRank, read
from collshim.errors import CommunicationError, WorldError
from collshim.forks import INHERITED, disown
from collshim.joining import join
from collshim.settings import get as current_options
from collshim.strangers import ASKING, remember_starters
from collshim.transports import Transport
from collshim.transports.dropping import await_destructors
from collshim.transports.processes.nccl.launches import LAUNCH_WATCH
from collshim.transports.processes.progress import LEFTOVERS, PROGRESS
from collshim.transports.rendezvous.world import ProcessWorld
from collshim.transports.threads.group import ThreadWorld
from collshim.transports.threads.transport import ThreadTransport
from collshim.transports.threads.turns import Turns


class World:
    """One rank's view of the ranks it works with.

    Attributes:
        rank: this rank in the world.
        size: the number of ranks in the world.
        local_rank: this rank among those of its machine.
        local_size: the number of ranks on this machine.
        communicator: the communicator of all ranks.
        state: the state that adapters keep for this rank, by the adapter's name.
        store: the torch store that the ranks of the world share; None after a split.
        is_thread: whether this rank is one of the threads of its process.
        is_over: whether its world, if one of threads, was closed.
    """

    def __init__(self, transport: Transport, local_rank: int, local_size: int, ranks: Sequence[int]) -> None:
        self.rank = transport.rank
        self.size = transport.size
        self.local_rank = local_rank
        self.local_size = local_size
        self.communicator = Communicator(transport, ranks, "world")
        self.state: dict[str, Any] = {}
        self.store: Any = None
        self.is_thread = False
        self.is_over = False
        self._threads: list[int] = []

    def activity(self) -> str:
        """Describe what this rank does outside any collective: its line of the program, and its last call."""
        threads = self._threads or [threading.main_thread().ident or 0]
        return activity_of(threads, self.last_call())

    def last_call(self) -> str:
        """Describe the last call that this rank posted; empty if there was none."""
        return self.communicator._pending.last_call()

    def __repr__(self) -> str:
        return f"<World: rank {self.rank} of {self.size}>"

    def split(self, ranks: Sequence[int]) -> World | None:
        """Make a smaller world of these ranks, with new rank numbers and adapter states; None on other ranks.

        Every rank of the new world must call this, with the same ranks in the same order.
        """
        part = self.communicator._split(ranks)
        if part is None:
            return None
        transport = part[0]
        world = World(transport, transport.rank, transport.size, range(transport.size))
        world.communicator.timeout = self.communicator.timeout
        return world

    def close(self) -> None:
        """Leave the world."""
        self.communicator.close()


class _Process:
    """State that the threads of this process share."""

    lock = threading.RLock()
    world: World | None = None
    shared: ProcessWorld | None = None
    local_worlds = 0
    generations = itertools.count()
    inherited: World | None = None
    """The world of the rank that forked this process."""


class _Thread(threading.local):
    """State of each thread."""

    world: World | None = None


_thread = _Thread()


def peek() -> World | None:
    """Return this thread's world, else the process's, else None; never make one.

    A thread that a rank started, and a process that it forked, see the rank's world: they may read its properties, but
    its communicators refuse their calls.
    """
    return _thread.world or _Process.world or _inherited()


def _inherited() -> World | None:
    started_by: World | None = ASKING.world
    return started_by if started_by is not None and not started_by.is_over else _Process.inherited


def place() -> str:
    """Return the suffix of an error text, such as `` (rank 1 of 4)``; empty if this rank has no world yet."""
    own = peek()
    return "" if own is None else f" (rank {own.rank} of {own.size})"


def no_rank_here() -> WorldError | None:
    """Return the error if this thread has no world while others of its process do; None otherwise."""
    if peek() is not None or not _Process.local_worlds:
        return None
    return WorldError(
        f"thread {threading.current_thread().name} is not a rank: ranks of this process are threads, and none of them "
        "started this thread; make it one with collshim.world.use(world)"
    )


def current() -> World:
    """Return this thread's world, or the process's; make one from the environment if there is none; see ``peek``.

    Raises:
        WorldError: ranks of this process are threads, and none of them started this thread; or the environment
            contradicts itself.
    """
    world = _thread.world or _Process.world or _inherited()  # no := here: AutoGraph cannot convert it
    if world is not None:
        return world
    if (error := no_rank_here()) is not None:
        raise error
    with _Process.lock:
        return _Process.world or init()


def init(
    rank: int | None = None,
    size: int | None = None,
    *,
    address: str | None = None,
    port: int | None = None,
    store: Any = None,
    timeout: float | None = None,
    overrides: bool = False,
    secret: str | None = None,
) -> World:
    """Make a world of processes for this process; every process of the world calls this, and waits for the others.

    Args:
        rank: this rank; by default from the launcher's environment.
        size: the number of ranks; by default from the launcher's environment.
        address: the host on which rank 0's store listens; by default MASTER_ADDR.
        port: the port on which it listens; by default MASTER_PORT.
        store: a torch store that all ranks can reach, instead of an address.
        timeout: how many seconds a rank waits for the others, and the deadline of later waits; by default that of
            ``options``.
        overrides: whether the arguments take precedence over the environment; otherwise a difference is an error.
        secret: a secret that only the processes of the world know, so that no other process can act as one of them; by
            default COLLSHIM_SECRET, which ``collshim run`` sets on one machine.

    Raises:
        WorldError: the process already has a world, or the arguments contradict themselves or the environment.
    """
    with _Process.lock:
        refuse_thread_ranks()
        if _Process.world is not None:
            raise WorldError(f"the process already has a world ({_Process.world}); close it before making another")
        launched = read(rank, size, address, port, needs_address=store is None, overrides=overrides)
        _Process.world = _join(launched, store, timeout, secret)
        return _Process.world


def refuse_thread_ranks() -> None:
    """Raise an error, before the first wait, if a world of the process is made while ranks of it are threads.

    Raises:
        WorldError: ranks of this process are threads.
    """
    if _Process.local_worlds:
        raise WorldError("ranks of this process are threads, so the process cannot be a rank of another world")


def close() -> None:
    """Leave this thread's world, or the process's; the program may make another world afterwards."""
    world = peek()
    if world is None:
        return
    if world is not _Process.world:
        _thread.world = ASKING.world = _Process.inherited = None
        world.close()
        return
    _Process.world = None
    _announce_and_wait(world)
    shared, _Process.shared = _Process.shared, None
    try:
        world.close()
    finally:  # a warning about leaks might be an error
        if shared is not None:
            shared.close()


def _announce_and_wait(world: World, why: str = "has left the world") -> None:
    world.communicator.announce_leaving(why)
    if _Process.shared is not None:
        _Process.shared.wait_until_left(world.size)


def _leave_at_exit() -> None:
    """Announce that a process ends without ``close``."""
    error = getattr(sys, "last_value", None)  # an uncaught exception
    why = "has left the world" if error is None else how_it_failed(error)
    if _Process.world is not None:
        _announce_and_wait(_Process.world, why)
    shared = _Process.shared
    if shared is not None:
        _fail_if_untold(shared, waits=error is None)
        shared.abandon()
    await_destructors()
    PROGRESS.stop()
    LEFTOVERS.stop()
    LAUNCH_WATCH.stop()
    warn_of_leaks()  # last: a warning might be an error


def _fail_if_untold(shared: ProcessWorld, *, waits: bool) -> None:
    """Let the process fail if a call on a GPU was aborted and the program does not know."""
    try:
        shared.settle(waits=waits)
    except CommunicationError as failure:
        name = f"{type(failure).__module__}.{type(failure).__qualname__}"
        exit_status.fail(f"{name}: {failure} (not reported before the program ended)")
    except KeyboardInterrupt:
        exit_status.fail("KeyboardInterrupt: calls on the GPU were not over")


def settle() -> None:
    """Wait until the GPU has finished the process's calls; raise any failure that was not reported yet."""
    if _Process.shared is not None:
        _Process.shared.settle()


def warn_of_leaks() -> None:
    """Issue a ResourceWarning for each message, receive and communicator left open, after the process has left."""
    if _Process.shared is not None:
        _Process.shared.warn_of_leaks()


def announce_leaving(why: str, *, stays: bool = False) -> None:
    """Tell the other processes that this one makes no further calls; ranks that wait for it soon get an error.

    With ``stays``, the process lives until the others' calls are over.
    """
    if _Process.world is not None:
        _Process.world.communicator.announce_leaving(why, stays=stays)


def _forget() -> None:
    """Disown the parent's world in a process forked off a rank, which must not announce that its parent leaves."""
    own, process = _thread.world or _inherited(), _Process.world
    _Process.lock, _Process.local_worlds = threading.RLock(), 0
    for world in (process, own):
        if world is not None and world.size > 1:
            _Process.inherited = world
            INHERITED.append(world)
    if own in INHERITED:
        _thread.world = ASKING.world = None
    if process in INHERITED:
        INHERITED.append(_Process.shared)
        _Process.world = _Process.shared = None
    disown(repr(_Process.inherited or "ranks"))


os.register_at_fork(after_in_child=_forget)


@contextmanager
def use(world: World) -> Iterator[World]:
    """Make this thread a rank of ``world`` for a block of code."""
    before, _thread.world = _thread.world, world
    asked, ASKING.world = ASKING.world, None
    world._threads.append(threading.get_ident())
    try:
        yield world
    finally:
        _thread.world, ASKING.world = before, asked
        world._threads.remove(threading.get_ident())


def local_worlds(size: int, turns: Turns | None = None) -> LocalWorlds:
    """Make a world of ``size`` ranks that are threads of this process; see ``LocalWorlds``."""
    return LocalWorlds(size, turns)


class LocalWorlds(Sequence[World]):
    """The worlds of ranks that are threads: the r-th is rank r's; each thread enters its own with ``use``.

    Close it when the threads are done, or use it as a context manager. With ``turns`` each thread takes its turn before
    its first call, and keeps it until it waits for a call.
    """

    def __init__(self, size: int, turns: Turns | None = None) -> None:
        if size < 1:
            raise WorldError(f"size of a world is {size}, should be at least 1")
        self._shared = ThreadWorld(size, compares_sites=current_options().check == "sites")
        self._shared.turns = turns
        ranks = range(size)
        group = self._shared.group(tuple(ranks), f"world{next(_Process.generations)}")
        self._worlds = [World(ThreadTransport(group, rank), rank, size, ranks) for rank in ranks]
        store = HashStore()
        for world in self._worlds:
            world.store, world.is_thread = store, True
        self._shared.activities = [WeakMethod(world.activity) for world in self._worlds]
        self._open = True
        remember_starters(lambda: _thread.world)
        with _Process.lock:
            _Process.local_worlds += 1

    def __getitem__(self, rank: Any) -> Any:
        return self._worlds[rank]

    def __len__(self) -> int:
        return len(self._worlds)

    def __enter__(self) -> LocalWorlds:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def leave(self, rank: int, why: str) -> None:
        """Note that rank ``rank`` makes no further calls: ranks that wait for it immediately fail with ``why``."""
        self._shared.leave(rank, why)
        if self._shared.turns is not None:
            self._shared.turns.leave(rank)

    def where(self, rank: int) -> str:
        """Describe where rank ``rank`` is."""
        return self._shared.whereabouts(rank)

    def close(self) -> None:
        """End the world; ranks that still wait in it get an error."""
        if self._open:
            self._open = False
            for world in self._worlds:
                world.is_over = True
            try:
                self._shared.close()
            finally:  # a warning about leaks might be an error
                with _Process.lock:
                    _Process.local_worlds -= 1


def _join(launched: LaunchedRank, store: Any, timeout: float | None, secret: str | None) -> World:
    seconds = current_options().timeout if timeout is None else timeout
    if launched.size == 1:
        alone = World(ThreadTransport(ThreadWorld(1).group((0,), "world"), 0), 0, 1, (0,))
        alone.store = HashStore() if store is None else store
        return alone
    transport, shared = join(launched, store, seconds, secret, _keep)
    world = World(transport, launched.local_rank, launched.local_size, range(launched.size))
    world.communicator.timeout = seconds
    world.store = shared.store
    shared.connections.talk.activity = world.activity
    return world


def _keep(shared: ProcessWorld | None) -> None:
    """Keep the state that must end with the process; None forgets it."""
    _Process.shared = shared
    if shared is not None:
        atexit.unregister(_leave_at_exit)  # registered by an earlier world: once is enough
        atexit.register(_leave_at_exit)
