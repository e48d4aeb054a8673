"""``tf.variable_creator_scope``: functions that variables made inside a block are made by.

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
    """Variables made inside are what ``variable_creator(next_creator, **kwargs)`` returns; of several the inner first.

    ``kwargs`` are all arguments of ``tf.Variable``. Those of the block are the thread's that entered it, and of the
    replicas that it starts.
    """
    token = _CREATORS.set((*_CREATORS.get(), variable_creator))
    try:
        yield
    finally:
        _CREATORS.reset(token)


def created_by_all(create: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """What the creators of the blocks around make of the arguments, with ``create`` as the last of them."""
    for creator in _CREATORS.get():
        create = partial(creator, create)
    return create(**arguments)
