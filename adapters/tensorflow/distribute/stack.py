"""The strategy and the replica of each thread: a stack per thread over one default entry.

Source: TensorFlow 2.21, ``tf.distribute`` and its recorded results of calls from a wrong context.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, NoReturn, Protocol, TypeVar

from collshim.errors import ArgumentError, also

S = TypeVar("S")

ContextError = also(ArgumentError, RuntimeError)


class Replica(Protocol):
    """The part of a replica context that the stack uses: its strategy."""

    @property
    def strategy(self) -> object:
        """The strategy of the replica."""


class Entry(NamedTuple):
    """The context of a caller: across the replicas of a strategy (None), or in one of them."""

    strategy: Any
    replica_context: Any


class _Stack(threading.local):
    def __init__(self) -> None:
        self.entries: list[Entry] = []


_STACK = _Stack()
_DEFAULT: list[Entry] = []


def set_default(strategy: object, replica_context: Replica) -> None:
    """Set the entry of every thread outside of all strategies."""
    _DEFAULT[:] = [Entry(strategy, replica_context)]


def current() -> Entry:
    """Return the calling thread's entry."""
    return _STACK.entries[-1] if _STACK.entries else _DEFAULT[0]


@contextmanager
def entered(strategy: S, replica_context: Replica | None) -> Iterator[S]:
    """Put an entry on this thread's stack while the block runs."""
    height = enter(strategy, replica_context)
    try:
        yield strategy
    finally:
        leave(height)


def enter(strategy: object, replica_context: Replica | None) -> int:
    """Put an entry on this thread's stack; return the stack's height below it, for ``leave``."""
    _STACK.entries.append(Entry(strategy, replica_context))
    return len(_STACK.entries) - 1


def leave(height: int) -> None:
    """Cut this thread's stack down to ``height``."""
    del _STACK.entries[height:]


def depth() -> int:
    """Return the height of this thread's stack."""
    return len(_STACK.entries)


def is_in_replica() -> bool:
    """Return whether the caller is in a replica that ``Strategy.run`` called."""
    entry = current()
    return entry is not _DEFAULT[0] and entry.replica_context is not None


def is_default(strategy: object) -> bool:
    """Return whether ``strategy`` is the one of threads outside of all strategies."""
    return strategy is _DEFAULT[0].strategy


_UPDATED: ContextVar[int | None] = ContextVar("updated", default=None)


@contextmanager
def updating(place: int) -> Iterator[None]:
    """Mark the block as the update of the ``place``-th copy of a variable, at which other variables are read too."""
    token = _UPDATED.set(place)
    try:
        yield
    finally:
        _UPDATED.reset(token)


def updated() -> int | None:
    """Return the place of the copy that is being updated; None in a replica, and outside of updates."""
    return _UPDATED.get() if current().replica_context is None else None


_FUNCTION_OF: ContextVar[object] = ContextVar("function_of", default=None)
_FUNCTIONS: ContextVar[int] = ContextVar("functions", default=0)
_IN_A_FUNCTION = (
    "`merge_call` called while defining a new graph or a tf.function. This happens if the function that "
    "`strategy.run()` calls has a nested `@tf.function` in which replicas synchronize: decorate the function given to "
    "`strategy.run` or what calls `strategy.run` instead, or move the synchronization out of the nested function."
)


@contextmanager
def in_function() -> Iterator[None]:
    """Mark the block as the body of a ``tf.function``, in which the caller's replica must not synchronize."""
    token, count = _FUNCTION_OF.set(current().replica_context), _FUNCTIONS.set(_FUNCTIONS.get() + 1)
    try:
        yield
    finally:
        _FUNCTION_OF.reset(token)
        _FUNCTIONS.reset(count)


def is_in_function() -> bool:
    """Return whether the caller is in the body of a ``tf.function``."""
    return _FUNCTIONS.get() > 0


def require_no_function(context: object) -> None:
    """Refuse a replica inside of a nested ``tf.function``.

    Raises:
        RuntimeError: the caller is in a nested ``tf.function``; the text has advice.
    """
    if _FUNCTION_OF.get() is context:
        raise ContextError(_IN_A_FUNCTION)


_USE_MERGE_CALL = "Method requires being in cross-replica context, use get_replica_context().merge_call()"


def require_cross_replica(strategy: object, message: str = _USE_MERGE_CALL) -> None:
    """Refuse a caller that is in a replica, with ``message``, or in a different strategy.

    Raises:
        RuntimeError: the caller is in the wrong context; the text has the reason.
    """
    entry = current()
    if entry is _DEFAULT[0] or (entry.strategy is strategy and entry.replica_context is None):
        return
    if entry.strategy is strategy:
        raise ContextError(message)
    _wrong_strategy(strategy)


def require_scope(strategy: object) -> None:
    """Refuse a caller outside of the strategy's scope and replicas.

    Raises:
        RuntimeError: the caller is in a different strategy, or in none; the text names the strategy.
    """
    if current().strategy is not strategy:
        _wrong_strategy(strategy)


def require_replica(context: Replica) -> None:
    """Refuse a caller that is not in exactly this replica.

    Raises:
        RuntimeError: the caller is in the wrong context; the text has the reason.
    """
    entry = current()
    if entry.replica_context is context:
        return
    if entry.replica_context is None:
        raise ContextError("Need to be inside `call_for_each_replica()`")
    if entry.strategy is context.strategy:
        raise ContextError("Mismatching ReplicaContext.")
    raise ContextError(f"Mismatching tf.distribute.Strategy objects: {entry.strategy} is not {context.strategy}.")


def _wrong_strategy(strategy: object) -> NoReturn:
    entered_strategy = current().strategy
    if is_default(entered_strategy):
        raise ContextError(f'Need to be inside "with strategy.scope()" for {strategy}')
    raise ContextError(f"Mixing different tf.distribute.Strategy objects: {entered_strategy} is not {strategy}")
