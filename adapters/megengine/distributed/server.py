"""The ranks' key-value store (source: MegEngine 1.13.0, ``megengine.distributed.server``).

Values are sent by XML-RPC, as in MegEngine: None, booleans, 32-bit integers, floats, text, bytes, dates, lists, and
dictionaries with text keys. A tuple is received as a list, bytes as ``xmlrpc.client.Binary`` and a date as
``xmlrpc.client.DateTime``.
"""

from __future__ import annotations

import socket
import time
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any
from xmlrpc.client import Fault, ServerProxy

from collshim.errors import DeadlineError, PeerError
from collshim.megengine.distributed._table import Table, serve
from collshim.settings import get as current_options
from collshim.transports.rendezvous.serving import reach_store

__all__ = ["Client", "Server"]


class Server:
    """A server in this process for the ranks on this machine; it runs as long as the object lives.

    ``launcher`` and ``init_process_group`` serve at their ``master_ip``, so that other machines can connect if it is a
    network address; MegEngine 1.13 serves on all interfaces.

    Args:
        port: the port; 0 for a free one.

    Attributes:
        py_server_port: the port, for ``init_process_group``.
        mm_server_port: the same port; MegEngine has a second one.
    """

    def __init__(self, port: int = 0) -> None:
        self._listen("localhost", port)

    @classmethod
    def _at(cls, host: str, port: int) -> Server:
        """Return a server that listens at this address."""
        server = cls.__new__(cls)
        server._listen(host, port)
        return server

    def _listen(self, host: str, port: int) -> None:
        self._table = Table(host)
        self._table.rendezvous("1")  # now, because the process must not fork while this runs
        self.py_server_port = serve(self._table, host, port, self)
        self.mm_server_port = self.py_server_port

    def _end(self, turn: int) -> None:
        """Close the store of the ``turn``-th world, and prepare the next."""
        self._table._forget(str(turn))
        self._table.rendezvous(str(turn + 1))


class Client:
    """One rank's client of the store; every wait ends with DeadlineError after the ``timeout`` of ``collshim.options``.

    Args:
        master_ip: the host of the ``Server``.
        port: the port of the ``Server``.

    Raises:
        PeerError: no ``Server`` was available in time.
    """

    def __init__(self, master_ip: str, port: int) -> None:
        self.master_ip = master_ip
        self.port = port
        self._turns: Counter[str] = Counter()
        self._close: Callable[[], Any] = lambda: None
        self.connect()

    def connect(self) -> None:
        """Wait until the ``Server`` is available, and connect; if connected already, reconnect."""
        self._close()
        self._table = ServerProxy(f"http://{self.master_ip}:{self.port}", allow_none=True)
        self._close = weakref.finalize(self, self._table("close"))
        limit = time.monotonic() + current_options().timeout
        while not self._answers():
            if time.monotonic() > limit:
                raise PeerError(f"no megengine Server listens at {self.master_ip}:{self.port}")
            time.sleep(0.05)

    def get_mm_server_port(self) -> int:
        """Return the server's port."""
        return self.port

    def user_set(self, key: str, val: Any) -> bool:
        """Store a value under a key, replacing an earlier one; return True."""
        return bool(self._call("put", f"user/{key}", _plain(val)))

    def user_get(self, key: str) -> Any:
        """Wait until there is a value under a key, and return it."""
        return self._await("get", f"user/{key}")

    def user_pop(self, key: str) -> Any:
        """Wait until there is a value under a key, remove it and return it."""
        return self._await("pop", f"user/{key}")

    def bcast_val(self, val: Any, key: str, size: int) -> Any:
        """Send a value to ``size - 1`` other ranks under a key.

        The other ranks pass None, and the value is returned there; on the sender, None is returned.

        For each key, the n-th calls of the ``size`` ranks match each other.
        """
        turn = f"bcast/{key}/{self._turns[key]}"
        self._turns[key] += 1
        if val is not None:
            self._call("put", turn, val)
            return None
        value = self._await("get", turn)
        if self._call("add", f"{turn}/read", 1) == size - 1:
            self._call("drop", turn)
            self._call("drop", f"{turn}/read")
        return value

    def group_barrier(self, key: str, size: int) -> None:
        """Wait until ``size`` ranks have called this for the key."""
        count = self._call("add", f"barrier/{key}", 1)
        turn = f"barrier/{key}/{(count - 1) // size}"
        if count % size == 0:
            self._call("put", turn, True)
        self._await("get", turn)

    def set_is_grad(self, key: str, is_grad: bool) -> None:
        """Set whether the data under ``key`` has a gradient; collshim's own calls do not use it."""
        self._call("put", f"is_grad/{key}", is_grad)

    def check_is_grad(self, key: str) -> bool:
        """Wait for the value of ``set_is_grad``, remove it and return it."""
        return bool(self._await("pop", f"is_grad/{key}"))

    def set_remote_tracer(self, key: str, tracer_set: Any) -> None:
        """Set the tracers of the data under ``key``; collshim's own calls do not use it."""
        self._call("put", f"tracer/{key}", tracer_set)

    def check_remote_tracer(self, key: str) -> Any:
        """Wait for the value of ``set_remote_tracer``, remove it and return it."""
        return self._await("pop", f"tracer/{key}")

    def _answers(self) -> bool:
        try:
            self._call("add", "clients", 1)
        except PeerError:
            return False
        return True

    def _await(self, method: str, key: str) -> Any:
        return self._call(method, key, current_options().timeout)

    def _call(self, method: str, *arguments: Any) -> Any:
        try:
            return getattr(self._table, method)(*arguments)
        except Fault as fault:
            raise DeadlineError(fault.faultString.partition(":")[2]) from fault
        except OSError as error:
            raise PeerError(f"the megengine Server at {self.master_ip}:{self.port} is gone: {error}") from error


def _plain(value: Any) -> Any:
    """Convert torch's shapes to plain lists, which XML-RPC supports, even in lists, tuples and dictionaries."""
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return {key: _plain(item) for key, item in value.items()} if isinstance(value, dict) else value


def world_store(client: Client, rank: int, turn: int | None) -> Any:
    """Return the torch store for the ranks of one of several worlds; the ``Server`` serves it.

    If ``turn`` is None, the n-th world of each rank is the same world.
    """
    number = client._call("add", f"worlds/{rank}", 1) if turn is None else turn
    port = client._call("rendezvous", str(number))
    return reach_store(client.master_ip, port, timeout=current_options().timeout)


def listens(master_ip: str, port: int) -> bool:
    """Return whether anything listens at this address."""
    try:
        socket.create_connection((master_ip, port), timeout=1).close()
    except OSError:
        return False
    return True
