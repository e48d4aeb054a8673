"""``tf.variable_creator_scope``: functions that create the variables of a block.

Source: TensorFlow 2.21, run eagerly on CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

_CREATORS: ContextVar[tuple[Callable[..., Any], ...]] = ContextVar("creators", default=())


@contextmanager
def variable_creator_scope(variable_creator: Callable[..., Any]) -> Iterator[None]:
    """Let ``variable_creator(next_creator, **kwargs)`` create the block's variables; inner creators run first.

    ``kwargs`` are all arguments of ``tf.Variable``. The block affects the thread that entered it, and the replicas that
    it starts.
    """
    token = _CREATORS.set((*_CREATORS.get(), variable_creator))
    try:
        yield
    finally:
        _CREATORS.reset(token)


def current() -> tuple[Callable[..., Any], ...]:
    """Return the creators of the enclosing blocks, the outermost first."""
    return _CREATORS.get()


def set_current(creators: tuple[Callable[..., Any], ...]) -> None:
    """Set the creators of the enclosing blocks, the outermost first."""
    _CREATORS.set(creators)


def create_with_all(create: Callable[..., Any], arguments: dict[str, Any], of_strategy: Callable[..., Any]) -> Any:
    """Call the creators of the enclosing blocks with the arguments, with ``create`` as the last of them.

    Args:
        create: the function that makes a variable of one replica.
        arguments: those of ``tf.Variable``.
        of_strategy: the creator of the caller's strategy: the outermost if its scope was entered in another context.
    """
    creators = _CREATORS.get()
    for creator in creators if of_strategy in creators else (of_strategy, *creators):
        create = partial(creator, create)
    return create(**arguments)
