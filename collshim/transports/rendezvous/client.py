"""The store of a world, asked by a thread of its own, so that whoever asks waits no longer than it wants to.

torch's client waits for its answer without a limit: for ever where the process that serves the store was stopped, or
where the network between them is cut.
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
from typing import Any, Generic, TypeVar

from torch.distributed import DistNetworkError, PrefixStore, TCPStore

from collshim.transports.sockets.descriptors import sockets_to

T = TypeVar("T")

PATIENCE = 0.5
"""Seconds that an answer may take before the store counts as silent."""

_CONNECT_SECONDS = 60.0
_SPARE_SECONDS = 0.2
"""That torch gets to say itself why it could not connect in time."""

_LEAST_SECONDS = 0.1
"""That a connection gets at least, however late it is."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 0.25
"""Seconds between two looks whether somebody listens."""

_SIGNATURE_LENGTH = 32


class StoreSilentError(Exception):
    """The store has not answered in time."""


class _Question(Generic[T]):
    """What is asked, and where the answer goes."""

    def __init__(self, ask: Callable[[Any], T]) -> None:
        self.ask = ask
        self.answered = threading.Event()
        self.answer: Any = None
        self.failure: Exception | None = None

    def put_to(self, store: Callable[[], Any]) -> None:
        """Ask the store, however long it takes; who does says then that it is answered."""
        try:
            self.answer = self.ask(store())
        except Exception as error:
            self.failure = error if isinstance(error, DistNetworkError) else StoreSilentError(str(error))

    def within(self, seconds: float, server: str) -> T:
        """The answer; see ``StoreClient.ask``."""
        if not self.answered.wait(seconds):
            raise StoreSilentError(server)
        if self.failure is not None:
            raise self.failure
        answer: T = self.answer
        return answer


def connected(host: str, port: int, seconds: float) -> TCPStore:
    """A client of the store at this address; torch waits for its first word without a limit.

    Raises:
        StoreSilentError: there is none, or it said nothing, within that many seconds.
        DistNetworkError: there is none.
    """
    limit = time.monotonic() + seconds
    _await_listener(host, port, limit)
    left = max(limit - time.monotonic(), _LEAST_SECONDS)
    asked = _Question[TCPStore](lambda store: store)

    def connect() -> None:
        asked.put_to(lambda: _client(host, port, left))
        asked.answered.set()

    before = sockets_to(port)
    threading.Thread(target=connect, name="collshim-store", daemon=True).start()
    try:
        return asked.within(left + _SPARE_SECONDS, f"{host}:{port} has not answered")
    except StoreSilentError:
        _shut_down(sockets_to(port) - before)
        raise


def _await_listener(host: str, port: int, limit: float) -> None:
    """Wait until somebody listens there. torch would wait in C++, in a thread that outlives an interpreter which ends.

    Raises:
        StoreSilentError: nobody did until ``limit``, a time of ``time.monotonic``.
    """
    pause = _FIRST_PAUSE
    while True:
        left = limit - time.monotonic()
        try:
            socket.create_connection((host, port), timeout=max(left, _LEAST_SECONDS)).close()
            return
        except OSError as error:
            if left <= pause:
                raise StoreSilentError(f"{host}:{port} cannot be connected to: {error}") from error
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def _client(host: str, port: int, seconds: float) -> TCPStore:
    return TCPStore(host, port, is_master=False, wait_for_workers=False, timeout=timedelta(seconds=seconds))


def _shut_down(descriptors: Iterable[int]) -> None:
    """Whoever waits for an answer there gets an error."""
    for descriptor in descriptors:
        with suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as connection:
            connection.shutdown(socket.SHUT_RDWR)


class StoreClient:
    """One process's questions to the store of its world.

    Args:
        store: a torch store; of a TCPStore another connection is made, since one waits for one answer at a time.
        prefix: of all keys.
        server: who serves the store, for error texts.
        secret: what every process of the world knows, and no other: it signs values with it.
    """

    def __init__(self, store: Any, prefix: str, server: str, secret: bytes = b"") -> None:
        self.server = server
        self._secret = secret
        self._given: Any = store
        self._prefix = prefix
        self._store: Any = None
        if isinstance(store, TCPStore):
            self.server += f" at {store.host}:{store.port}"
        self._questions: SimpleQueue[_Question[Any] | None] = SimpleQueue()
        self._asked_at: float | None = None
        self._is_closed = False
        self._owner = os.getpid()
        self._others, self._own = set[int](), set[int]()
        self._thread = threading.Thread(target=self._serve, name="collshim-store", daemon=True)
        self._thread.start()

    @property
    def silent_for(self) -> float:
        """Seconds since the question was asked that the store has not answered; 0.0 where it does."""
        asked_at = self._asked_at
        silent = 0.0 if asked_at is None else time.monotonic() - asked_at
        return silent if silent > PATIENCE else 0.0

    def ask(self, question: Callable[[Any], T], seconds: float = PATIENCE) -> T:
        """The answer to what ``question`` asks the store.

        Raises:
            StoreSilentError: none came within that many seconds, or the store is silent already.
            DistNetworkError: the process that served the store has ended.
        """
        if self._is_closed or (self.silent_for and seconds <= PATIENCE):
            raise StoreSilentError(self.server)
        asked: _Question[T] = _Question(question)
        self._questions.put(asked)
        return asked.within(seconds, self.server)

    def check(self, *keys: str, seconds: float = PATIENCE) -> bool:
        """Whether the store has all these keys."""
        return self.ask(lambda store: bool(store.check([*keys])), seconds)

    def get(self, keys: Sequence[str], seconds: float = PATIENCE) -> list[str]:
        """The keys' values; empty where the store has none, or one that no rank of this world has signed."""
        texts = self.ask(lambda store: [store.get(key) if store.check([key]) else b"" for key in keys], seconds)
        return [self._opened(key, text) for key, text in zip(keys, texts, strict=True)]

    def set(self, key: str, value: str, seconds: float = PATIENCE) -> None:
        """Give a key this value."""
        signed = self._signed(key, value)
        self.ask(lambda store: store.set(key, signed), seconds)

    def post(self, key: str, value: str) -> None:
        """``set`` without waiting; in vain where the store is silent or gone."""
        signed = self._signed(key, value)
        self.tell(lambda store: store.set(key, signed))

    def tell(self, statement: Callable[[Any], object]) -> None:
        """Ask without waiting for the answer; in vain where the store is silent or gone."""
        if not self._is_closed and not self.silent_for:
            self._questions.put(_Question(statement))

    def first(self, key: str, value: str, expected: str = "", *, seconds: float = PATIENCE) -> str:
        """Give a key this value where it has the expected one, or none that is signed; the value that it has then."""
        before, signed = self._signed(key, expected) if expected else "", self._signed(key, value)

        def exchange(store: Any) -> str:
            found = self._opened(key, store.compare_set(key, before, signed))
            if not found:
                store.set(key, signed)
            return found or value

        return self.ask(exchange, seconds)

    def _signed(self, key: str, value: str) -> str:
        return f"{self._signature(key, value)}{value}"

    def _opened(self, key: str, text: bytes) -> str:
        signature, value = text[:_SIGNATURE_LENGTH], text[_SIGNATURE_LENGTH:].decode(errors="replace")
        return value if hmac.compare_digest(signature, self._signature(key, value).encode()) else ""

    def _signature(self, key: str, value: str) -> str:
        return hmac.digest(self._secret, f"{key}\0{value}".encode(), "sha256").hex()[:_SIGNATURE_LENGTH]

    def close(self) -> None:
        """Ask nothing more; what was told before is on its way."""
        if self._is_closed:
            return
        self._is_closed = True
        self._questions.put(None)
        if self._owner == os.getpid():
            self._thread.join(PATIENCE)
            if self._thread.is_alive():
                self._interrupt()

    def _interrupt(self) -> None:
        """End the wait for an answer: one that came while the interpreter ends would abort the process."""
        store = self._given
        if isinstance(store, TCPStore):
            found = sockets_to(store.port)
            _shut_down(found & self._own if self._own else found - self._others)
            self._thread.join(PATIENCE)

    def _serve(self) -> None:
        while (question := self._questions.get()) is not None:
            self._asked_at = time.monotonic()
            question.put_to(self._connection)
            self._asked_at = None
            question.answered.set()
            del question
        self._store = self._given = None

    def _connection(self) -> Any:
        """The store; of a TCPStore a connection that is made with the first question."""
        if self._store is None:
            store = self._given
            if isinstance(store, TCPStore):
                self._others = sockets_to(store.port)
                port, store = store.port, _client(store.host, store.port, _CONNECT_SECONDS)
                self._own = sockets_to(port) - self._others
                store.set_timeout(timedelta(seconds=PATIENCE))  # of a key that is deleted after it was seen
            self._store = PrefixStore(self._prefix, store)
        return self._store
