"""``Strategy.scope`` and ``experimental_set_strategy``: entering and leaving a strategy."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from collshim.tensorflow.distribute import context

if TYPE_CHECKING:
    from collshim.tensorflow.distribute.strategy import Strategy


class Scope:
    """A context manager that makes a strategy the thread's current one; it may be entered again inside itself.

    What is entered stays so until it is left, even if nobody keeps this object.
    """

    def __init__(self, strategy: Any) -> None:
        self._strategy: Strategy = strategy
        self._entered: list[int] = []

    def __enter__(self) -> Strategy:
        if context.is_default(self._strategy):
            _refuse_nesting()
            self._entered.append(context.depth())
        else:
            context.require_cross_replica(self._strategy)
            self._entered.append(context.enter(self._strategy, None))
        return self._strategy

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        context.leave(self._entered.pop())


class _Set(threading.local):
    scope: AbstractContextManager[Any] | None = None


_SET = _Set()


def experimental_set_strategy(strategy: Strategy | None) -> None:
    """Make ``strategy`` this thread's current one until the next such call; None for the default one.

    Raises:
        RuntimeError: called inside a ``with strategy.scope()`` or a replica.
    """
    if context.depth() > (_SET.scope is not None):
        raise context.ContextError("Must not be called inside a `tf.distribute.Strategy` scope.")
    if _SET.scope is not None:
        _SET.scope.__exit__(None, None, None)
        _SET.scope = None
    if strategy is not None:
        scope = strategy.scope()
        scope.__enter__()
        _SET.scope = None if context.is_default(strategy) else scope


def _refuse_nesting() -> None:
    if context.has_strategy():
        raise context.ContextError("Must not nest tf.distribute.Strategy scopes.")
