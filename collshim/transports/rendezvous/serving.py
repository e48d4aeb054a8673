"""Serve the store of a world at an address, or connect to it."""

from __future__ import annotations

import atexit
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

from torch.distributed import DistNetworkError, Store, TCPStore

from collshim.errors import WorldError
from collshim.settings import service_thread
from collshim.torch_release import LIBUV_TAKES_SOCKETS
from collshim.transports.rendezvous.client import StoreSilentError, connect
from collshim.transports.sockets.addresses import is_loopback, loopback_of
from collshim.transports.sockets.descriptors import raise_descriptor_limit

LONGEST = 1e7
"""The deadline for a store and for gloo, in seconds, if collshim's deadline is infinite."""

_BACKLOG = 4096

_PAUSE = 0.01
"""How many seconds pass between two checks of which ranks have read the reason."""


def serve_store(host: str) -> TCPStore:
    """Serve a store from this process at a free port of ``host``."""
    return _serve(host, 0, 60.0)


def reach_store(
    host: str, port: int, *, serves: bool = False, timeout: float = 60.0, server: str = "another process"
) -> TCPStore:
    """Return the store at this address, which ``server`` serves.

    With ``serves``, this process serves it, even if another store of this process uses the port.
    """
    seconds = min(timeout, LONGEST)
    try:
        if serves:
            return _serve(host, port, seconds)
        return connect(host, port, seconds)
    except (DistNetworkError, StoreSilentError) as error:
        what = f"connect to the world's store at {host}:{port}, served by {server} (timed out after {timeout:g} s)"
        text = f"serve the world's store at {host}:{port}" if serves else what
        raise WorldError(f"cannot {text}: {error}") from error


class KeptStores:
    """Stores of worlds that could not be made, which this process serves until the other ranks have read the reason."""

    def __init__(self) -> None:
        self._keepers: list[threading.Thread] = []

    def keep(self, store: Store, is_read: Callable[[], bool], then: Callable[[], None], seconds: float) -> None:
        """Keep ``store`` until ``is_read()``, at most ``seconds``, without delaying the caller; then call ``then``."""

        def kept(stores: list[Store]) -> None:
            limit = time.monotonic() + seconds
            with suppress(DistNetworkError, StoreSilentError):
                while not is_read() and time.monotonic() < limit:
                    time.sleep(_PAUSE)
            then()
            stores.clear()

        atexit.unregister(self._wait)
        atexit.register(self._wait)
        self._keepers = [keeper for keeper in self._keepers if keeper.is_alive()]
        self._keepers.append(service_thread(kept, [store], name="collshim-kept-store"))
        self._keepers[-1].start()

    def _wait(self) -> None:
        """Wait at the end of the process, because its finalization would abort a thread that asks a store."""
        for keeper in self._keepers:
            keeper.join()


KEPT_STORES = KeptStores()
"""The stores that this process keeps."""


def _serve(host: str, port: int, seconds: float) -> TCPStore:
    """Serve a store; torch listens on all interfaces, so for a loopback address pass it a socket that does not."""
    raise_descriptor_limit()
    options: dict[str, Any] = {"timeout": timedelta(seconds=seconds), "wait_for_workers": False, "multi_tenant": True}
    if is_loopback(host):
        with suppress(OSError):  # the port is taken, perhaps by a store of this process
            number = loopback_of(host)
            family = socket.AF_INET6 if ":" in number else socket.AF_INET
            listener = socket.create_server((number, port), family=family, backlog=_BACKLOG)
            port = listener.getsockname()[1]
            options["master_listen_fd"] = listener.detach()
            options["use_libuv"] = LIBUV_TAKES_SOCKETS
    return TCPStore(host, port, is_master=True, **options)
