"""Where a process of a world is connected to."""

from __future__ import annotations

import errno
import os
import socket
from contextlib import suppress

BACKLOG = 4096
"""Connections that may wait to be accepted."""


class Listener:
    """A socket that listens at a free port of ``host``.

    Attributes:
        socket: to wait for those who come.
        port: the port.
    """

    def __init__(self, host: str) -> None:
        self.socket = socket.create_server((host, 0), family=family_of(host), backlog=BACKLOG)
        self.socket.setblocking(False)
        self.port: int = self.socket.getsockname()[1]
        self._reserve = os.open(os.devnull, os.O_RDONLY)

    def accept(self) -> socket.socket | None:
        """The next who has come; None for nobody. Where no descriptor is left for one, it is turned away."""
        try:
            return self.socket.accept()[0]
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                return None
        os.close(self._reserve)
        with suppress(OSError):
            self.socket.accept()[0].close()
        self._reserve = os.open(os.devnull, os.O_RDONLY)
        return None

    def close(self) -> None:
        """Listen no more."""
        self.socket.close()
        if self._reserve >= 0:
            os.close(self._reserve)
            self._reserve = -1


def family_of(host: str) -> socket.AddressFamily:
    """The family of an address of numbers."""
    return socket.AF_INET6 if ":" in host else socket.AF_INET
