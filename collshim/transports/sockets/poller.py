"""Poll a process's sockets. A waiting thread handles all events; if none waits, the poller's own thread does."""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from collshim.settings import service_thread
from collshim.transports.waiting import have_processors, pause

Handler = Callable[[int], None]
"""A function that is called with the socket's events, with the poller's lock held."""

_QUIET = 0.002
"""How many seconds after a wait the poller's thread leaves sockets to waiting threads, to save a thread switch."""

_LONGEST_QUIET = 0.02
"""How many seconds the thread leaves them at most to a thread that waits for long."""

_LONGEST_TURN = 0.25
"""After how many seconds a thread checks its sockets itself while it waits for another thread to handle them."""

_LONGEST_STEP = 5.0

_LOOKS, _FEW_LOOKS = 128, 2
"""How often a wait looks for events before it sleeps: for about 120 microseconds, as long as waking a thread takes; and
the number if there are more ranks than processors."""


def looks_of(ranks: int) -> int:
    """Return how often a wait looks for events before it sleeps if this many ranks share the host's processors."""
    return _LOOKS if have_processors(ranks) else _FEW_LOOKS


class Box(Protocol):
    """Messages that arrive in shared memory, where no selector sees them."""

    def look(self, waits: bool) -> bool:
        """Return whether there is something to drain; with ``waits``, poll briefly."""
        ...

    def drain(self) -> None:
        """Handle the messages that are there; called with the poller's lock held."""

    def rest(self, *, asleep: bool) -> None:
        """Note that a thread is about to sleep and must be woken, or no longer sleeps; called with the lock held."""


class Poller:
    """Polls sockets for all threads of a process.

    Attributes:
        lock: held while a socket's events are handled.
        looks: how often a wait looks for events before it sleeps.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.looks = _LOOKS
        self._selector = selectors.DefaultSelector()
        self._sees_changes = hasattr(self._selector, "fileno")  # of registrations, while a thread waits
        self._wake, self._woken = socket.socketpair()
        self._wake.setblocking(False)
        self._woken.setblocking(False)
        self._leading = threading.Lock()
        self._changed = threading.Condition()
        self._followers = 0
        self._last_wait = float("-inf")
        self._is_closed = False
        self.add(self._woken, self._calm)
        self._thread = service_thread(self._run, name="collshim-messages")
        self._thread.start()

    def add(self, sock: socket.socket, handler: Handler) -> None:
        """Register ``handler``, which is called whenever the socket can be read."""
        self._selector.register(sock, selectors.EVENT_READ, handler)
        self._rouse()

    def await_room(self, sock: socket.socket, *, awaits: bool) -> None:
        """Start, or stop, calling the socket's handler also when the socket can be written."""
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if awaits else 0)
        key = self._selector.get_key(sock)
        if key.events != events:
            self._selector.modify(sock, events, key.data)
            self._rouse()

    def remove(self, sock: socket.socket) -> None:
        """Stop handling the socket."""
        self._selector.unregister(sock)

    def wait(self, over: Callable[[], bool], seconds: float, box: Box | None = None) -> bool:
        """Handle events until ``over``, for at most that many seconds; return whether ``over`` holds.

        With ``box``, also handle the messages there.
        """
        if over():
            return True
        if box is not None:
            self._drain(box)
            if over():
                return True
        limit = time.monotonic() + seconds
        while True:
            if self._leading.acquire(blocking=False):
                self._lead(over, limit, box)
            else:
                with self._asleep(box):
                    self._follow(over, limit - time.monotonic())
            if over():
                return True
            if time.monotonic() >= limit:
                return False

    def _lead(self, over: Callable[[], bool], limit: float, box: Box | None) -> None:
        try:
            if time.monotonic() < limit:
                self._look(over, box)
            if over():  # the previous thread that handled events might have ended the wait
                return
            with self._asleep(box):
                while not over():
                    self._step(max(0.0, limit - time.monotonic()))
                    if time.monotonic() >= limit:
                        return
        finally:
            self._last_wait = time.monotonic()
            self._leading.release()
            self._notify_followers()

    def _drain(self, box: Box) -> None:
        if box.look(False):
            with self.lock:
                box.drain()
            self._notify_followers()

    @contextmanager
    def _asleep(self, box: Box | None) -> Iterator[None]:
        """Let the other ranks wake this one while the block sleeps; first take the messages that have arrived."""
        if box is None:
            yield
            return
        with self.lock:
            box.rest(asleep=True)
        try:
            self._drain(box)
            yield
        finally:
            with self.lock:
                box.rest(asleep=False)

    def _look_into(self, box: Box, over: Callable[[], bool]) -> bool:
        """Poll briefly for messages in shared memory; return whether the wait is over."""
        for _ in range(self.looks):  # bounded: a message might have to wait for one from a socket
            if not box.look(True):
                return False
            self._drain(box)
            if over():
                return True
        return False

    def _look(self, over: Callable[[], bool], box: Box | None) -> None:
        """Poll briefly for events; the next one is often on its way."""
        if box is not None and self._look_into(box, over):
            return
        for _ in range(self.looks if box is None else 1):
            ready = self._selector.select(0.0)
            if ready:
                self._handle(ready)
                if over():
                    return

    def _follow(self, over: Callable[[], bool], left: float) -> None:
        """Wait for the thread that handles the events."""
        with self._changed:
            self._followers += 1
            try:
                if left > 0 and self._leading.locked() and not over():
                    self._changed.wait(min(left, _LONGEST_TURN))
            finally:
                self._followers -= 1

    def _notify_followers(self) -> None:
        if self._followers:
            with self._changed:
                self._changed.notify_all()

    def _run(self) -> None:
        while not self._is_closed:
            if time.monotonic() - self._last_wait < _QUIET or not self._leading.acquire(blocking=False):
                time.sleep(pause(time.monotonic() - self._last_wait, _QUIET, _LONGEST_QUIET))
                continue
            try:
                while not (self._is_closed or self._followers):
                    self._step(None)
            except Exception as error:  # reported as in any thread, but this one must go on
                arguments = (type(error), error, error.__traceback__, self._thread)
                threading.excepthook(threading.ExceptHookArgs(arguments))
            finally:
                self._last_wait = time.monotonic()
                self._leading.release()
                self._notify_followers()

    def _step(self, seconds: float | None) -> None:
        """Wait until a socket can be read or written, and handle it."""
        self._handle(self._selector.select(seconds))

    def _handle(self, ready: list[tuple[selectors.SelectorKey, int]]) -> None:
        for key, events in ready:
            with self.lock:
                key.data(events)
        self._notify_followers()

    def _rouse(self) -> None:
        """Let a thread that is already waiting notice a changed registration."""
        if not self._sees_changes:
            self._wake_up()

    def _wake_up(self) -> None:
        with suppress(BlockingIOError):
            self._wake.send(b"\0")

    def _calm(self, events: int) -> None:
        with suppress(BlockingIOError):
            self._woken.recv(4096)

    def close(self) -> None:
        """End the thread, and stop handling events."""
        self._is_closed = True
        self._wake_up()
        if threading.current_thread() is not self._thread:
            self._thread.join(_LONGEST_STEP)
        self.disown()

    def disown(self) -> None:
        """Release the operating system's objects; in a forked process they belong to the parent."""
        self._is_closed = True
        self._selector.close()
        self._wake.close()
        self._woken.close()
