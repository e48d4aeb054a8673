"""The ranks' key-value store (source: MegEngine 1.13.0, ``megengine.distributed.server``).

Values are marshalled by XML-RPC, as MegEngine's are: None, booleans, integers of 32 bits, floats, text, bytes, dates,
lists, and dictionaries with text as keys. A tuple comes back as a list, bytes as ``xmlrpc.client.Binary`` and a date
as ``xmlrpc.client.DateTime``.
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
    """A server in this process for the ranks of this machine, as long as the object lives.

    ``launcher`` and ``init_process_group`` serve at their ``master_ip``, so other machines can connect if it is an
    address of the network; MegEngine 1.13 serves on all interfaces.

    Args:
        port: the port; 0 for a free one.

    Attributes:
        py_server_port: its port, for ``init_process_group``.
        mm_server_port: the same; MegEngine has a second one.
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
        self._table.rendezvous("1")  # now, because a process that forks later must not do so while this runs
        self.py_server_port = serve(self._table, host, port, self)
        self.mm_server_port = self.py_server_port

    def _end(self, turn: int) -> None:
        """End the service of the ``turn``-th world, and prepare the next."""
        self._table._forget(str(turn))
        self._table.rendezvous(str(turn + 1))


class Client:
    """One rank's client of the store; every wait ends with DeadlineError after the ``timeout`` of ``collshim.options``.

    Args:
        master_ip: the host of the ``Server``.
        port: its port.

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
        """Connect as soon as the ``Server`` is available; reconnect if connected."""
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
        """Put a value under a key, replacing an earlier one; return True."""
        return bool(self._call("put", f"user/{key}", _plain(val)))

    def user_get(self, key: str) -> Any:
        """Wait for a value under a key and return it."""
        return self._await("get", f"user/{key}")

    def user_pop(self, key: str) -> Any:
        """Wait for a value under a key, remove it and return it."""
        return self._await("pop", f"user/{key}")

    def bcast_val(self, val: Any, key: str, size: int) -> Any:
        """Send a value to ``size - 1`` other ranks under a key; they pass None and get the value; the sender gets None.

        The n-th call of each of the ``size`` ranks for a key matches the n-th call of the others.
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
        """Return once ``size`` ranks have called this for the key."""
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
    """Convert torch's shapes to plain lists, which XML-RPC supports; in lists, tuples and dictionaries too."""
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return {key: _plain(item) for key, item in value.items()} if isinstance(value, dict) else value


def world_store(client: Client, rank: int, turn: int | None) -> Any:
    """Return a torch store for the ranks of one of several worlds; the ``Server`` serves it.

    Without a ``turn``, the n-th world of one rank is the n-th world of the others.
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
