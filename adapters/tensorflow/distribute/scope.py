"""``Strategy.scope``: a context manager to enter and leave a strategy."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

from collshim.tensorflow import variable_creators
from collshim.tensorflow.distribute import stack


class _HasExtended(Protocol):
    @property
    def extended(self) -> Any: ...


S = TypeVar("S", bound=_HasExtended)
Creators = tuple[Callable[..., Any], ...]


class Scope(Generic[S]):
    """A context manager that makes a strategy the thread's current one; it can be entered again inside itself.

    The strategy's creator of variables runs before the creators of the enclosing blocks. An entered strategy stays
    current until it is left, even if this object is no longer referenced.
    """

    def __init__(self, strategy: S) -> None:
        self._strategy = strategy
        self._entered: list[tuple[int, Creators, Creators]] = []

    def __enter__(self) -> S:
        outer = inner = variable_creators.current()
        if stack.is_default(self._strategy):
            _refuse_nesting()
            height = stack.depth()
        else:
            stack.require_cross_replica(self._strategy)
            if stack.current().strategy is not self._strategy:
                inner = (*outer, self._strategy.extended._create_variable)
            height = stack.enter(self._strategy, None)
        variable_creators.set_current(inner)
        self._entered.append((height, outer, inner))
        return self._strategy

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        height, outer, inner = self._entered[-1]
        if kind is None and variable_creators.current() != inner:
            raise stack.ContextError(
                "Variable creator scope nesting error: move call to tf.distribute.set_strategy() out of `with` scope."
            )
        self._entered.pop()
        variable_creators.set_current(outer)
        stack.leave(height)


def _refuse_nesting() -> None:
    if not stack.is_default(stack.current().strategy):
        raise stack.ContextError("Must not nest tf.distribute.Strategy scopes.")
