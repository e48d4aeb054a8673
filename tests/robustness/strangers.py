"""Strangers: connections to every port at which processes listen, from outside their worlds."""

from __future__ import annotations

import os
import random
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

_LISTENS = "0A"
_SEQUENCE_NUMBERS = 64
_OF_THE_STORE = struct.pack("<BI", 0, 0x3C85F7CE)
"""The first bytes of every client of torch's store."""


def listening_ports(pid: int) -> list[int]:
    """Return the ports at which a process listens; none if it has ended."""
    inodes = set[str]()
    with suppress(OSError):
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with suppress(OSError):  # closed meanwhile
                inodes.add(os.readlink(entry.path).removeprefix("socket:[").removesuffix("]"))
    rows = [row.split() for name in ("tcp", "tcp6") for row in Path("/proc/net", name).read_text().splitlines()[1:]]
    return sorted({int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == _LISTENS and row[9] in inodes})


def silence(number: int) -> bytes:
    return b""


def garbage(number: int) -> bytes:
    return os.urandom(400)


def huge_lengths(number: int) -> bytes:
    return b"\xff" * 400


def store_request(number: int) -> bytes:
    """Request that torch's store set a key of 2^62 bytes."""
    return _OF_THE_STORE + b"\x01" + struct.pack("<Q", 2**62) + b"key"


def sequence_numbers(number: int) -> bytes:
    """Return gloo's first bytes on one of its connections."""
    return struct.pack("<Q", random.randrange(_SEQUENCE_NUMBERS))


KINDS: dict[str, Callable[[int], bytes]] = {
    kind.__name__: kind for kind in (silence, garbage, huge_lengths, store_request, sequence_numbers)
}


@contextmanager
def connected_strangers(pids: Sequence[int], each: int, says: Callable[[int], bytes] = silence) -> Iterator[int]:
    """Open this many connections to each port of these processes, fewer if one is silent; yield the number accepted."""
    with ExitStack() as held:
        yield sum(_connect_many(held, port, each, says) for pid in pids for port in listening_ports(pid))


def _connect_many(held: ExitStack, port: int, each: int, says: Callable[[int], bytes]) -> int:
    for number in range(each):
        try:
            stranger = held.enter_context(socket.create_connection(("127.0.0.1", port), timeout=0.5))
        except OSError:  # nobody answers
            return number
        with suppress(OSError):  # it was rejected at once
            stranger.sendall(says(number))
    return each


@contextmanager
def insistent_strangers(pids: Sequence[int], most: int, says: Callable[[int], bytes]) -> Iterator[list[int]]:
    """Meanwhile connect to every port that these processes open, up to ``most`` times each.

    Yields:
        The port of each accepted connection.
    """
    over, taken = threading.Event(), list[int]()

    def insist() -> None:
        with ExitStack() as held:
            while not over.wait(0.001):
                for port in {port for pid in pids for port in listening_ports(pid)}:
                    if taken.count(port) < most:
                        taken.extend([port] * _connect_many(held, port, 1, says))

    thread = threading.Thread(target=insist, daemon=True)
    thread.start()
    try:
        yield taken
    finally:
        over.set()
        thread.join(60)
        assert not thread.is_alive()
