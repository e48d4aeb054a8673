"""gloo's device, which connects a process's groups. Its listener accepts connections only while a group is made."""

from __future__ import annotations

import os
import secrets
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch.distributed import ProcessGroupGloo

from collshim.log import LOG
from collshim.transports.sockets.addresses import is_loopback, loopback_of
from collshim.transports.sockets.descriptors import borrow, listening_sockets

CONNECTS_LATER = os.environ.get("TORCH_GLOO_LAZY_INIT", "0") not in ("", "0")
"""Whether gloo connects two ranks at their first call, and not when the group is made."""

_TCP_MD5SIG_EXT, _FLAG_PREFIX = 32, 1
"""A socket option of Linux, for which Python has no name, and its flag that makes it use the length of the prefix."""

_KEY_FOR = struct.Struct("=126sxxBBHi80s")
"""The value of the option: an address, padded; flags; the bits of the prefix; the bytes of the key; 0; and the key."""

_KEY_BYTES = 16
_ANY = struct.pack("=HHI", socket.AF_INET, 0, 0)
_ANY_6 = struct.pack("=HHI16sI", socket.AF_INET6, 0, 0, b"", 0)
_ANY_MAPPED = struct.pack("=HHI16sI", socket.AF_INET6, 0, 0, bytes(10) + b"\xff\xff", 0)
"""The addresses of all peers, if the prefix is of no bits; the last one stands for those that use IPv4 over IPv6."""


class GlooDevice:
    """The device shared by all groups of the process.

    gloo accepts every connection, and keeps it until the other end says which pair of ranks it is for. If it has no
    file descriptor left for one, it ends the process. So while no group is being made, the operating system drops all
    packets to its listener that are not signed (RFC 2385) with a random key, which nobody knows: by then all ranks are
    connected. Anyone else who tries to connect receives no answer. Unlike a socket filter, this needs no privilege.

    Args:
        interface: the network interface whose address gloo uses; "" if none is named.
        address: the world's master; if it is a loopback address, gloo does not use other interfaces.

    Attributes:
        device: gloo's device.
    """

    def __init__(self, interface: str, address: str) -> None:
        before = listening_sockets()
        self.device = _device(interface, address)
        found = listening_sockets() - before
        self._listener = found.pop() if len(found) == 1 and not CONNECTS_LATER else None
        if len(found) > 1:  # another thread has just started to listen, and must not be cut off
            LOG.info("gloo's listener is one of several new sockets, and accepts connections at any time")
        self._makers = 0
        self._lock = threading.Lock()
        self._apply(_drop)

    @contextmanager
    def listening(self) -> Iterator[list[Any]]:
        """Let the listener accept connections inside this block; yield a list of the device, for gloo's options."""
        with self._lock:
            self._makers += 1
            if self._makers == 1:
                self._apply(_admit)
        try:
            yield [self.device]
        finally:
            with self._lock:
                self._makers -= 1
                if not self._makers:
                    self._apply(_drop)

    def _apply(self, what: Callable[[socket.socket], None]) -> None:
        if self._listener is None:
            return
        try:
            with borrow(self._listener) as listener:
                what(listener)
        except OSError as error:  # the operating system has no such keys
            LOG.info("gloo's listener accepts connections at any time: %s", error)


def _drop(listener: socket.socket) -> None:
    _set_key(listener, secrets.token_bytes(_KEY_BYTES))


def _admit(listener: socket.socket) -> None:
    _set_key(listener, b"")


def _set_key(listener: socket.socket, key: bytes) -> None:
    """Let the listener require this key of all peers; none if it is empty."""
    for peers in (_ANY,) if listener.family == socket.AF_INET else (_ANY_6, _ANY_MAPPED):
        listener.setsockopt(
            socket.IPPROTO_TCP, _TCP_MD5SIG_EXT, _KEY_FOR.pack(peers, _FLAG_PREFIX, 0, len(key), 0, key)
        )


def _device(interface: str, address: str) -> Any:
    if interface:
        return ProcessGroupGloo.create_device(interface=interface)
    if is_loopback(address):
        return ProcessGroupGloo.create_device(hostname=loopback_of(address))
    return ProcessGroupGloo.create_default_device()
