"""Which strategy and which replica the caller is in: a stack per thread with a default entry at its foot.

Source: TensorFlow 2.21, ``tf.distribute`` and its recorded answers to calls from a wrong context.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol

from collshim.errors import ArgumentError, also

if TYPE_CHECKING:
    from collshim.tensorflow.distribute.replica_context import ReplicaContext
    from collshim.tensorflow.distribute.strategy import Strategy

ContextError = also(ArgumentError, RuntimeError)


class Replica(Protocol):
    """What a replica context is to the stack: one object, with the strategy that it belongs to."""

    @property
    def strategy(self) -> object:
        """The strategy that the replica is one of."""


class Entry(NamedTuple):
    """Where a caller stands: across the replicas of a strategy, or in one of them."""

    strategy: Strategy
    replica_context: ReplicaContext | None

    @property
    def is_default(self) -> bool:
        """Whether this is the foot of the stack, outside every scope and every replica."""
        return self is _default_entry()


class _Stack(threading.local):
    def __init__(self) -> None:
        self.entries: list[Entry] = []


_STACK = _Stack()
_DEFAULT: list[Entry] = []


def set_default(strategy: Any, replica_context: Any) -> None:
    """What holds where no strategy was entered."""
    _DEFAULT[:] = [Entry(strategy, replica_context)]


def current() -> Entry:
    """The calling thread's entry."""
    return _STACK.entries[-1] if _STACK.entries else _default_entry()


@contextmanager
def entered(strategy: Any, replica_context: Any) -> Iterator[Strategy]:
    """This thread stands there, across the replicas with None, for as long as the block runs."""
    before = enter(strategy, replica_context)
    try:
        yield strategy
    finally:
        leave(before)


def enter(strategy: Any, replica_context: Any) -> int:
    """This thread stands there from now on; what ``leave`` wants to know."""
    _STACK.entries.append(Entry(strategy, replica_context))
    return len(_STACK.entries) - 1


def leave(before: int) -> None:
    """Undo the ``enter`` that gave ``before``, and all that came after it."""
    del _STACK.entries[before:]


def get_replica_context() -> ReplicaContext | Any:  # Any stands for None, which callers in a replica need not ask for
    """The replica that the caller runs in; None in a strategy's scope and in a merge function."""
    return current().replica_context


def get_strategy() -> Strategy:
    """The strategy that the caller is in; the default one, with one replica, outside all others."""
    return current().strategy


def has_strategy() -> bool:
    """Whether the caller is in a strategy other than the default one."""
    return get_strategy() is not _default_entry().strategy


def in_cross_replica_context() -> bool:
    """Whether the caller is in a strategy's scope or in a merge function."""
    return current().replica_context is None


def is_default(strategy: object) -> bool:
    """Whether ``strategy`` is the one that holds where none was entered."""
    return strategy is _default_entry().strategy


def depth() -> int:
    """How many entries this thread has made."""
    return len(_STACK.entries)


_USE_MERGE_CALL = "Method requires being in cross-replica context, use get_replica_context().merge_call()"


def require_cross_replica(strategy: object, message: str = _USE_MERGE_CALL) -> None:
    """Refuse a caller that is in a replica, with ``message``, or in another strategy.

    Raises:
        RuntimeError: with the reason.
    """
    entry = current()
    if entry.is_default or (entry.strategy is strategy and entry.replica_context is None):
        return
    if entry.strategy is strategy:
        raise ContextError(message)
    _wrong_strategy(strategy)


def require_replica(context: Replica) -> None:
    """Refuse a caller that is not in this very replica.

    Raises:
        RuntimeError: with the reason.
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
    if not has_strategy():
        raise ContextError(f'Need to be inside "with strategy.scope()" for {strategy}')
    raise ContextError(f"Mixing different tf.distribute.Strategy objects: {get_strategy()} is not {strategy}")


def _default_entry() -> Entry:
    return _DEFAULT[0]
