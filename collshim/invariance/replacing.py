"""Replaces functions of torch while steps are recorded, on several threads at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

_lock = threading.Lock()
_users = dict[tuple[str, str], int]()


@contextmanager
def replaced(module: Any, name: str, function: Callable[..., Any]) -> Iterator[None]:
    """Replace a function inside the block by ``function``, whose first argument is then the original.

    Threads that are in the block at the same time share one replacement.
    """
    key = module.__name__, name
    with _lock:
        if not _users.get(key):
            setattr(module, name, partial(function, getattr(module, name)))
        _users[key] = _users.get(key, 0) + 1
    try:
        yield
    finally:
        with _lock:
            _users[key] -= 1
            if not _users[key]:
                setattr(module, name, getattr(module, name).args[0])
