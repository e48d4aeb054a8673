"""The XML-RPC service of a ``Server``: values that processes read and wait for, and the stores of their worlds."""

from __future__ import annotations

import errno
import os
import socket
import threading
import weakref
from socketserver import ThreadingMixIn
from typing import Any
from xmlrpc.server import SimpleXMLRPCRequestHandler, SimpleXMLRPCServer

from collshim.settings import service_thread
from collshim.transports.rendezvous.serving import serve_store


class Table:
    """Values by key; a wait raises TimeoutError after ``seconds``. torch's stores are served at ``host``."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._stores: dict[str, Any] = {}
        self._stores_lock = threading.Lock()
        self._values: dict[str, Any] = {}
        self._changed = threading.Condition()

    def rendezvous(self, turn: str) -> int:
        """Return the port of the torch store for one world; this process serves the store."""
        with self._stores_lock:
            if turn not in self._stores:
                self._stores[turn] = serve_store(self._host)
            return int(self._stores[turn].port)

    def put(self, key: str, value: Any) -> bool:
        """Store a value, replacing an earlier one."""
        with self._changed:
            self._values[key] = value
            self._changed.notify_all()
        return True

    def get(self, key: str, seconds: float) -> Any:
        """Wait for the value and return it."""
        with self._changed:
            self._await(key, seconds)
            return self._values[key]

    def pop(self, key: str, seconds: float) -> Any:
        """Wait for the value, remove it and return it."""
        with self._changed:
            self._await(key, seconds)
            return self._values.pop(key)

    def add(self, key: str, amount: int) -> int:
        """Add to the number under a key, which starts at 0; return the sum."""
        with self._changed:
            self._values[key] = self._values.get(key, 0) + amount
            return int(self._values[key])

    def drop(self, key: str) -> bool:
        """Remove a value."""
        with self._changed:
            return self._values.pop(key, None) is not None

    def _await(self, key: str, seconds: float) -> None:
        if not self._changed.wait_for(lambda: key in self._values, seconds):
            raise TimeoutError(f"nobody set a value for {key!r} within {seconds:g} s")

    def _forget(self, turn: str) -> None:
        """Close the store of a world that has ended."""
        with self._stores_lock:
            self._stores.pop(turn, None)


class _Requests(SimpleXMLRPCRequestHandler):
    """Handles calls to the table, on any path; a connection serves many calls."""

    protocol_version = "HTTP/1.1"  # keeps connections
    disable_nagle_algorithm = True  # an answer is sent in two writes; the second must not wait 40 ms for the first


class _Threaded(ThreadingMixIn, SimpleXMLRPCServer):
    """A server with one thread per connection, because a call may wait for another call."""

    request_queue_size = 128  # all ranks of a machine may connect at once
    daemon_threads = True
    block_on_close = False


def serve(table: Table, host: str, port: int, owner: object) -> int:
    """Serve a table at this address as long as ``owner`` lives; return the port, a free one if ``port`` is 0."""
    try:
        server = _Threaded((host, port), _Requests, logRequests=False, allow_none=True)
    except OSError as error:
        if error.errno not in (errno.EADDRNOTAVAIL, socket.EAI_NONAME):
            raise
        server = _Threaded(("0.0.0.0", port), _Requests, logRequests=False, allow_none=True)  # a gateway's address
    server.register_instance(table)
    thread = service_thread(server.serve_forever, 0.05, name="megengine server")
    thread.start()
    weakref.finalize(owner, _stop, server, os.getpid())
    return int(server.server_address[1])


def _stop(server: _Threaded, pid: int) -> None:
    if os.getpid() == pid:  # a forked process has the socket but not the thread
        server.shutdown()
    server.server_close()
