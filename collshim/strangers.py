"""Threads that a rank starts while ranks are threads: they see their rank's world, and cannot make calls.

A process's rank is known to all its threads. If ranks are threads, a library's helper thread would take itself for the
only process: so a thread, or a task of a pool, remembers which rank started it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial, wraps
from typing import Any

from collshim.errors import WorldError


class _Asking(threading.local):
    """State of each thread.

    Attributes:
        world: the world of the rank that started the thread; None if no rank did, or if the thread has entered a world.
    """

    world: Any = None


ASKING = _Asking()


def refuse() -> None:
    """Raise an error in a thread that a rank started, and that has not entered its world.

    Raises:
        WorldError: this is such a thread.
    """
    if ASKING.world is not None:
        raise WorldError(
            f"thread {threading.current_thread().name} was started by {ASKING.world} and is not a rank itself: call "
            "collectives in the rank, or let the thread enter with collshim.world.use(world)"
        )


def remember_starters(own: Callable[[], Any]) -> None:
    """Let each thread started from now on, and each task of a pool, remember the world of the thread that started it.

    ``own`` returns that thread's own world, if it is a rank.
    """
    if not hasattr(threading.Thread.start, "__wrapped__"):
        threading.Thread.start = _wrap_start(threading.Thread.start, own)  # type: ignore[method-assign]
        ThreadPoolExecutor.submit = _wrap_submit(ThreadPoolExecutor.submit, own)  # type: ignore[method-assign]


def _wrap_start(start: Callable[..., None], own: Callable[[], Any]) -> Callable[..., None]:
    @wraps(start)
    def start_and_remember(thread: threading.Thread) -> None:
        world = own() or ASKING.world
        if world is not None:
            thread.run = partial(_run_for, world, thread.run)  # type: ignore[method-assign]
        start(thread)

    return start_and_remember


def _wrap_submit(submit: Callable[..., Future[Any]], own: Callable[[], Any]) -> Callable[..., Future[Any]]:
    @wraps(submit)
    def submit_and_remember(pool: ThreadPoolExecutor, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        world = own() or ASKING.world
        if world is not None:
            fn = partial(_run_for, world, fn)
        return submit(pool, fn, *args, **kwargs)

    return submit_and_remember


def _run_for(world: Any, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    before, ASKING.world = ASKING.world, world
    try:
        return fn(*args, **kwargs)
    finally:
        ASKING.world = before
