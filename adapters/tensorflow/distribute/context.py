"""``tf.distribute``'s functions for the current strategy and replica of the calling thread."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from typing import Any

from collshim.tensorflow.distribute import stack
from collshim.tensorflow.distribute.replica_context import ReplicaContext
from collshim.tensorflow.distribute.strategy import Strategy


def get_replica_context() -> ReplicaContext | Any:  # Any, not None, which callers in a replica need not check for
    """Return the replica that the caller runs in; None in a strategy's scope and in a merge function."""
    return stack.current().replica_context


def get_strategy() -> Strategy:
    """Return the strategy that the caller is in; outside of all strategies, the default one, with one replica."""
    strategy: Strategy = stack.current().strategy
    return strategy


def has_strategy() -> bool:
    """Return whether the caller is in a strategy other than the default one."""
    return not stack.is_default(get_strategy())


def in_cross_replica_context() -> bool:
    """Return whether the caller is in a strategy's scope or in a merge function."""
    return get_replica_context() is None


class _Set(threading.local):
    scope: AbstractContextManager[Any] | None = None


_SET = _Set()


def experimental_set_strategy(strategy: Strategy | None) -> None:
    """Make ``strategy`` this thread's current one until the next such call; None for the default one.

    Raises:
        RuntimeError: it is called inside a ``with strategy.scope()`` or a replica.
    """
    if stack.depth() > (_SET.scope is not None):
        raise stack.ContextError("Must not be called inside a `tf.distribute.Strategy` scope.")
    if _SET.scope is not None:
        _SET.scope.__exit__(None, None, None)
        _SET.scope = None
    if strategy is not None:
        scope = strategy.scope()
        scope.__enter__()
        _SET.scope = None if stack.is_default(strategy) else scope
