"""``Strategy.scope``: a context manager to enter and leave a strategy."""

from __future__ import annotations

from types import TracebackType
from typing import Generic, TypeVar

from collshim.tensorflow import variable_creators
from collshim.tensorflow.distribute import stack

S = TypeVar("S")


class Scope(Generic[S]):
    """A context manager that makes a strategy the thread's current one; it can be entered again inside itself.

    An entered strategy stays current until it is left, even if this object is no longer referenced.
    """

    def __init__(self, strategy: S) -> None:
        self._strategy = strategy
        self._entered: list[tuple[int, object]] = []

    def __enter__(self) -> S:
        if stack.is_default(self._strategy):
            _refuse_nesting()
            height = stack.depth()
        else:
            stack.require_cross_replica(self._strategy)
            height = stack.enter(self._strategy, None)
        self._entered.append((height, variable_creators.current()))
        return self._strategy

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        height, creators = self._entered[-1]
        if kind is None and variable_creators.current() != creators:
            raise stack.ContextError(
                "Variable creator scope nesting error: move call to tf.distribute.set_strategy() out of `with` scope."
            )
        self._entered.pop()
        stack.leave(height)


def _refuse_nesting() -> None:
    if not stack.is_default(stack.current().strategy):
        raise stack.ContextError("Must not nest tf.distribute.Strategy scopes.")
