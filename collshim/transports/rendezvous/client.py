"""Query the store of a world in a separate thread, so that a caller waits no longer than it wants to.

torch's client waits for an answer without a limit: forever, if the process that serves the store was stopped, or if
the network between them is cut.
"""

from __future__ import annotations

import hmac
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import timedelta
from queue import SimpleQueue
from typing import Any, Generic, TypeVar, cast

from torch.distributed import DistNetworkError, PrefixStore, Store, TCPStore

from collshim.settings import service_thread
from collshim.transports.sockets.descriptors import sockets_to

T = TypeVar("T")

PATIENCE = 0.5
"""How many seconds an answer may take before the store counts as silent."""

_CONNECT_SECONDS = 60.0
_SPARE_SECONDS = 0.2
"""How many seconds torch has to report by itself why it could not connect in time."""

_LEAST_SECONDS = 0.1
"""The least number of seconds for a connection attempt, however late it is."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 0.25
"""How many seconds pass between two attempts to reach the listener."""

_SIGNATURE_LENGTH = 32


class StoreSilentError(Exception):
    """The store did not answer in time."""


class _Query(Generic[T]):
    """A query to the store, and its answer."""

    def __init__(self, ask: Callable[[Store], T]) -> None:
        self.ask = ask
        self.completed = threading.Event()
        self.answer: Any = None
        self.failure: Exception | None = None

    def run(self, store: Callable[[], Store]) -> None:
        """Run the query without a timeout; the caller then signals completion."""
        try:
            self.answer = self.ask(store())
        except Exception as error:
            self.failure = error if isinstance(error, DistNetworkError) else StoreSilentError(str(error))

    def wait(self, seconds: float, server: str) -> T:
        """Return the answer; see ``StoreClient.ask``."""
        if not self.completed.wait(seconds):
            raise StoreSilentError(server)
        if self.failure is not None:
            raise self.failure
        answer: T = self.answer
        return answer


def connect(host: str, port: int, seconds: float) -> TCPStore:
    """Return a client of the store at this address; torch waits for its first answer without a limit.

    Raises:
        StoreSilentError: no store answered within that many seconds.
        DistNetworkError: there is no store.
    """
    limit = time.monotonic() + seconds
    _await_listener(host, port, limit)
    left = max(limit - time.monotonic(), _LEAST_SECONDS)
    query = _Query[TCPStore](lambda store: cast(TCPStore, store))

    def run() -> None:
        query.run(lambda: _client(host, port, left))
        query.completed.set()

    before = sockets_to(port)
    service_thread(run, name="collshim-store").start()
    try:
        return query.wait(left + _SPARE_SECONDS, f"{host}:{port} has not answered")
    except StoreSilentError:
        _shut_down(sockets_to(port) - before)
        raise


def _await_listener(host: str, port: int, limit: float) -> None:
    """Wait until the address accepts connections; torch would wait in C++, in a thread that outlives the interpreter.

    Raises:
        StoreSilentError: it accepted none by ``limit``, a time of ``time.monotonic``.
    """
    pause = _FIRST_PAUSE
    while True:
        left = limit - time.monotonic()
        try:
            socket.create_connection((host, port), timeout=max(left, _LEAST_SECONDS)).close()
            return
        except OSError as error:
            if left <= pause:
                raise StoreSilentError(f"cannot connect to {host}:{port}: {error}") from error
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def _client(host: str, port: int, seconds: float) -> TCPStore:
    return TCPStore(host, port, is_master=False, wait_for_workers=False, timeout=timedelta(seconds=seconds))


def _shut_down(descriptors: Iterable[int]) -> None:
    """Shut down connections, so that threads that wait for an answer on them fail."""
    for descriptor in descriptors:
        with suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as connection:
            connection.shutdown(socket.SHUT_RDWR)


class StoreClient:
    """One process's queries to the store of its world.

    Args:
        store: a torch store; for a TCPStore, a second connection is made, since each connection waits for one answer at
            a time.
        prefix: the prefix of all keys.
        server: the process that serves the store, for error texts.
        secret: the secret with which values are signed; only the processes of the world know it.
    """

    def __init__(self, store: Store, prefix: str, server: str, secret: bytes = b"") -> None:
        self.server = server
        self._secret = secret
        self._given: Any = store
        self._prefix = prefix
        self._store: Any = None
        self._port = store.port if isinstance(store, TCPStore) else None
        if isinstance(store, TCPStore):
            self.server += f" at {store.host}:{store.port}"
        self._queries: SimpleQueue[_Query[Any] | None] = SimpleQueue()
        self._asked_at: float | None = None
        self._is_closed = False
        self._owner = os.getpid()
        self._others, self._own = set[int](), set[int]()
        self._thread = service_thread(self._serve, name="collshim-store")
        self._thread.start()

    @property
    def silent_for(self) -> float:
        """How many seconds ago the unanswered query was sent; 0.0 if the store answers."""
        asked_at = self._asked_at
        silent = 0.0 if asked_at is None else time.monotonic() - asked_at
        return silent if silent > PATIENCE else 0.0

    def ask(self, query: Callable[[Store], T], seconds: float = PATIENCE) -> T:
        """Return the result of calling ``query`` with the store.

        Raises:
            StoreSilentError: no answer came within that many seconds, or the store is already silent.
            DistNetworkError: the process that served the store has ended.
        """
        if self._is_closed or (self.silent_for and seconds <= PATIENCE):
            raise StoreSilentError(self.server)
        pending: _Query[T] = _Query(query)
        self._queries.put(pending)
        return pending.wait(seconds, self.server)

    def check(self, *keys: str, seconds: float = PATIENCE) -> bool:
        """Return whether the store has all these keys."""
        return self.ask(lambda store: bool(store.check([*keys])), seconds)

    def get(self, keys: Sequence[str], seconds: float = PATIENCE) -> list[str]:
        """Return the keys' values; a value is empty if it is missing, or if no rank of this world has signed it."""
        texts = self.ask(lambda store: [store.get(key) if store.check([key]) else b"" for key in keys], seconds)
        return [self._verify(key, text) for key, text in zip(keys, texts, strict=True)]

    def get_all(self, keys: Sequence[str], seconds: float = PATIENCE) -> list[str]:
        """Call ``get`` if the store has all keys; return no values otherwise."""

        def ask(store: Any) -> list[bytes]:  # torch's stub lacks the names of the extended API
            if not store.check([*keys]):
                return []
            return store.multi_get([*keys]) if store.has_extended_api() else [store.get(key) for key in keys]

        return [self._verify(key, text) for key, text in zip(keys, self.ask(ask, seconds), strict=False)]

    def set(self, key: str, value: str, seconds: float = PATIENCE) -> None:
        """Set a key's value."""
        signed = self._sign(key, value)
        self.ask(lambda store: store.set(key, signed), seconds)

    def post(self, key: str, value: str) -> None:
        """Call ``set`` without waiting; has no effect if the store is silent or gone."""
        signed = self._sign(key, value)
        self.tell(lambda store: store.set(key, signed))

    def tell(self, statement: Callable[[Store], object]) -> None:
        """Run a query without waiting for its answer; has no effect if the store is silent or gone."""
        if not self._is_closed and not self.silent_for:
            self._queries.put(_Query(statement))

    def first(self, key: str, value: str, expected: str = "", *, seconds: float = PATIENCE) -> str:
        """Set a key if its value is the expected one, or is not signed; return the key's value afterwards."""
        before, signed = self._sign(key, expected) if expected else "", self._sign(key, value)

        def exchange(store: Store) -> str:
            found = self._verify(key, store.compare_set(key, before, signed))
            if not found:
                store.set(key, signed)
            return found or value

        return self.ask(exchange, seconds)

    def _sign(self, key: str, value: str) -> str:
        return f"{self._signature(key, value)}{value}"

    def _verify(self, key: str, text: bytes) -> str:
        signature, value = text[:_SIGNATURE_LENGTH], text[_SIGNATURE_LENGTH:].decode(errors="replace")
        return value if hmac.compare_digest(signature, self._signature(key, value).encode()) else ""

    def _signature(self, key: str, value: str) -> str:
        return hmac.digest(self._secret, f"{key}\0{value}".encode(), "sha256").hex()[:_SIGNATURE_LENGTH]

    def close(self) -> None:
        """Accept no more queries; queries that were made before are still sent."""
        if self._is_closed:
            return
        self._is_closed = True
        self._queries.put(None)
        if self._owner == os.getpid():
            self._thread.join(PATIENCE)
            if self._thread.is_alive():
                self._interrupt()

    def cut(self) -> None:
        """Shut down this process's connections to the store, as it ends: threads that wait on them fail."""
        if self._port is not None:
            _shut_down(sockets_to(self._port))

    def _interrupt(self) -> None:
        """End the wait for an answer: one that arrived while the interpreter ends would abort the process."""
        store = self._given
        if isinstance(store, TCPStore):
            found = sockets_to(store.port)
            _shut_down(found & self._own if self._own else found - self._others)
            self._thread.join(PATIENCE)

    def _serve(self) -> None:
        while (query := self._queries.get()) is not None:
            self._asked_at = time.monotonic()
            query.run(self._connection)
            self._asked_at = None
            query.completed.set()
            del query
        self._store = self._given = None

    def _connection(self) -> Store:
        """Return the store; for a TCPStore, a new connection that is made for the first query."""
        if self._store is None:
            store = self._given
            if isinstance(store, TCPStore):
                self._others = sockets_to(store.port)
                port, store = store.port, _client(store.host, store.port, _CONNECT_SECONDS)
                self._own = sockets_to(port) - self._others
                store.set_timeout(timedelta(seconds=PATIENCE))  # the key can be deleted after it has been seen
            self._store = PrefixStore(self._prefix, store)
        return cast(Store, self._store)
