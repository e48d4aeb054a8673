"""gloo's device, which connects a process's groups. Its listener accepts connections only while a group is made."""

from __future__ import annotations

import ctypes
import os
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

_ATTACH_FILTER, _DETACH_FILTER = 26, 27
"""Linux's socket options, for which Python has no names."""

_DROP_ALL = struct.pack("HBBI", 0x06, 0, 0, 0)
"""A filter of one instruction: return 0, the number of bytes of a packet to keep."""


class GlooDevice:
    """The device shared by all groups of the process.

    gloo accepts every connection, and keeps it until the other end says which pair of ranks it is for. If it has no
    file descriptor left for one, it ends the process. So the operating system drops packets to its listener while no
    group is being made: by then all ranks are connected. Anyone else who tries to connect receives no answer.

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
        except OSError as error:  # the operating system has no such filters
            LOG.info("gloo's listener accepts connections at any time: %s", error)


def _drop(listener: socket.socket) -> None:
    instructions = ctypes.create_string_buffer(_DROP_ALL)
    program = struct.pack("HP", len(_DROP_ALL) // 8, ctypes.addressof(instructions))
    listener.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, program)


def _admit(listener: socket.socket) -> None:
    listener.setsockopt(socket.SOL_SOCKET, _DETACH_FILTER, 0)


def _device(interface: str, address: str) -> Any:
    if interface:
        return ProcessGroupGloo.create_device(interface=interface)
    if is_loopback(address):
        return ProcessGroupGloo.create_device(hostname=loopback_of(address))
    return ProcessGroupGloo.create_default_device()
