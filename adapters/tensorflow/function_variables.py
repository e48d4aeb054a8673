"""The variables that a ``tf.function`` creates: only its first call may. Source: TensorFlow 2.21, on CPU."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from weakref import WeakKeyDictionary, ref

from collshim.errors import ArgumentValueError
from collshim.tensorflow.distribute import stack
from collshim.world import peek

_ONLY_ONCE = (
    "tf.function only supports singleton tf.Variables created on the first call: create the variable outside of the "
    "function, or only once and keep it"
)


class _Nobody:
    """Stands for the caller of a function outside of all worlds."""


_NOBODY = _Nobody()


class Creations:
    """The variables that one ``tf.function`` has created, for each rank that calls it."""

    def __init__(self) -> None:
        self._first: WeakKeyDictionary[Any, list[ref[Any]]] = WeakKeyDictionary()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Mark the block as a call of the function.

        Raises:
            ValueError: a variable is created, and this is not the rank's first call that has returned; or nothing
                refers to such a variable after the first call.
        """
        caller = stack.current().strategy if stack.is_in_replica() else peek() or _NOBODY
        call = _Call(self._first.get(caller))
        token = _CALL.set(call)
        try:
            yield
        finally:
            _CALL.reset(token)
        if call.allowed is None and _has_lost(call.created):
            raise ArgumentValueError(_ONLY_ONCE)
        self._first.setdefault(caller, call.created)


def _has_lost(created: list[ref[Any]]) -> bool:
    """Return whether nothing refers to one of the variables any more, so that the next call would create it again."""
    if created:
        gc.collect()  # a variable refers to itself
    return any(made() is None for made in created)


class _Call:
    """A call: the variables that it has created, and those that the first one had created; None in the first one."""

    def __init__(self, allowed: list[ref[Any]] | None) -> None:
        self.allowed, self.created = allowed, list[ref[Any]]()


_CALL: ContextVar[_Call | None] = ContextVar("call", default=None)


def record(variable: Any) -> None:
    """Note that a variable was created; a replica may receive one that the first replica has created in the same call.

    Raises:
        ValueError: the innermost ``tf.function`` around the caller has been called before.
    """
    call = _CALL.get()
    if call is None:
        return
    if call.allowed is not None and not any(made() is variable for made in call.allowed):
        raise ArgumentValueError(_ONLY_ONCE)
    call.created.append(ref(variable))


@contextmanager
def outside() -> Iterator[None]:
    """Let the block create variables as outside of all functions."""
    token = _CALL.set(None)
    try:
        yield
    finally:
        _CALL.reset(token)
