"""The file descriptors of this process: their limit, and which of them are sockets."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from collshim.errors import WorldError
from collshim.log import LOG

_SPARE_DESCRIPTORS = 8

_MOST_DESCRIPTORS = 1 << 16
"""The highest limit to set: enough for any world, and a bound on how many connections strangers can make here."""

_DESCRIPTORS = "/dev/fd"
_FAMILIES = (socket.AF_INET, socket.AF_INET6)


def raise_descriptor_limit() -> None:
    """Raise this process's soft limit on file descriptors to its hard limit, but to at most 65,536."""
    import resource  # not on Windows

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _MOST_DESCRIPTORS)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError) as error:  # on macOS the system's own limit can be lower
        LOG.info("the limit of file descriptors stays %d, since it cannot be %d: %s", soft, wanted, error)


def require_descriptors(size: int) -> None:
    """Raise an error if too few file descriptors are left for gloo to make a group: gloo would end the process.

    Raises:
        WorldError: there are too few.
    """
    needed, held = size + _SPARE_DESCRIPTORS, list[int]()
    try:
        for _ in range(needed):
            held.append(os.dup(2))
    except OSError as error:
        text = f"{len(held)} file descriptors are free, should be {needed} to make a group of {size} ranks"
        raise WorldError(f"{text}: {error.strerror}") from error
    finally:
        for descriptor in held:
            os.close(descriptor)


@contextmanager
def borrow(descriptor: int) -> Iterator[socket.socket]:
    """Yield the socket of a descriptor, which stays open; this uses no further descriptor.

    Raises:
        OSError: the descriptor is not a socket.
    """
    found = socket.socket(fileno=descriptor)
    try:
        yield found
    finally:
        found.detach()


def sockets_to(port: int) -> set[int]:
    """Return this process's descriptors of connections to the port; torch does not expose them."""
    return {descriptor for descriptor, found in _sockets() if _peer_port(found) == port}


def listening_sockets() -> set[int]:
    """Return this process's descriptors of sockets that listen for connections."""
    return {descriptor for descriptor, found in _sockets() if _listens(found)}


def _sockets() -> Iterator[tuple[int, socket.socket]]:
    """Yield each TCP or UDP socket of this process with its descriptor."""
    for descriptor in map(int, os.listdir(_DESCRIPTORS) if os.path.isdir(_DESCRIPTORS) else ()):
        with suppress(OSError), borrow(descriptor) as found:  # not a socket, or closed meanwhile
            if found.family in _FAMILIES:
                yield descriptor, found


def _peer_port(found: socket.socket) -> int | None:
    """Return the port that a socket is connected to; None if it is not connected."""
    with suppress(OSError):
        return int(found.getpeername()[1])
    return None


def _listens(found: socket.socket) -> bool:
    return bool(found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
