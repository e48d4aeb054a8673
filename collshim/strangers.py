"""Threads that a rank starts while ranks are threads: they get the answers that their rank gets, and make no calls.

A process's rank is known to all its threads. If ranks are threads, a helper of a library would take itself for the only
process: so a thread, or a task of a pool, remembers which rank started it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial, wraps
from typing import Any

from collshim.errors import WorldError


class _Asking(threading.local):
    """Of each thread.

    Attributes:
        world: that of the rank which started the thread; None if no rank did, and where the thread has entered a world.
    """

    world: Any = None


ASKING = _Asking()


def refuse() -> None:
    """Refuse a call of a thread that a rank started, and that has not entered its world.

    Raises:
        WorldError: it is one.
    """
    if ASKING.world is not None:
        raise WorldError(
            f"thread {threading.current_thread().name} was started by {ASKING.world} and is no rank itself: call "
            "collectives in the rank, or let the thread enter with collshim.world.use(world)"
        )


def remember_starters(own: Callable[[], Any]) -> None:
    """Let each thread that starts from now on, and each task of a pool, remember the world of the thread it comes from.

    ``own`` is that thread's own world, if it is a rank.
    """
    if not hasattr(threading.Thread.start, "__wrapped__"):
        threading.Thread.start = _remembering(threading.Thread.start, own)  # type: ignore[method-assign]
        ThreadPoolExecutor.submit = _remembering_tasks(ThreadPoolExecutor.submit, own)  # type: ignore[method-assign]


def _remembering(start: Callable[..., None], own: Callable[[], Any]) -> Callable[..., None]:
    @wraps(start)
    def start_and_remember(thread: threading.Thread) -> None:
        world = own() or ASKING.world
        if world is not None:
            thread.run = partial(_run_for, world, thread.run)  # type: ignore[method-assign]
        start(thread)

    return start_and_remember


def _remembering_tasks(submit: Callable[..., Future[Any]], own: Callable[[], Any]) -> Callable[..., Future[Any]]:
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
