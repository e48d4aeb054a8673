"""Free ports for tests."""

from __future__ import annotations

import itertools
import os
import socket

_PORTS = itertools.cycle(range(15_000 + os.getpid() % 97 * 150, 31_000))
"""Ports below those that systems assign: no connection of another program gets such a port before its test uses it."""


def free_port() -> int:
    """Return a port that nobody listens on, and the system does not assign."""
    return next(port for port in _PORTS if is_free(port))


def is_free(port: int) -> bool:
    """Return whether nobody listens on a port."""
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
