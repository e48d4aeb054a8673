"""The listening socket of a process of a world."""

from __future__ import annotations

import errno
import os
import socket
from contextlib import suppress

BACKLOG = 4096
"""The number of connections that can wait to be accepted."""


class Listener:
    """A socket that listens at a free port of ``host``.

    Attributes:
        socket: the listening socket.
        port: its port.
    """

    def __init__(self, host: str) -> None:
        self.socket = socket.create_server((host, 0), family=family_of(host), backlog=BACKLOG)
        self.socket.setblocking(False)
        self.port: int = self.socket.getsockname()[1]
        self._reserve = os.open(os.devnull, os.O_RDONLY)

    def accept(self) -> socket.socket | None:
        """Accept the next connection, or return None. If no descriptor is left for it, close it immediately."""
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
        """Stop listening."""
        self.socket.close()
        if self._reserve >= 0:
            os.close(self._reserve)
            self._reserve = -1


def family_of(host: str) -> socket.AddressFamily:
    """Return the family of a numeric address."""
    return socket.AF_INET6 if ":" in host else socket.AF_INET
