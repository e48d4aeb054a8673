"""The store of a world: served at an address, or reached there."""

from __future__ import annotations

import socket
from contextlib import suppress
from datetime import timedelta
from typing import Any

from torch.distributed import DistNetworkError, TCPStore

from collshim.errors import WorldError
from collshim.transports.rendezvous.client import StoreSilentError, connected
from collshim.transports.sockets.addresses import is_loopback, loopback_of
from collshim.transports.sockets.descriptors import raise_descriptor_limit

LONGEST = 1e7
"""Seconds: what a store and gloo take for a deadline has an end, also if ours has none."""

_BACKLOG = 4096


def serve_store(host: str) -> TCPStore:
    """A store served by this process at a free port of ``host``."""
    return _served(host, 0, 60.0)


def reach_store(
    host: str, port: int, *, serves: bool = False, timeout: float = 60.0, server: str = "another process"
) -> TCPStore:
    """The store at this address, which ``server`` serves.

    Served here where ``serves``, even beside another user of the port in this process.
    """
    seconds = min(timeout, LONGEST)
    try:
        if serves:
            return _served(host, port, seconds)
        return connected(host, port, seconds)
    except (DistNetworkError, StoreSilentError) as error:
        what = "cannot be served" if serves else f"is not to be reached, which {server} is to serve"
        raise WorldError(f"the world's store at {host}:{port} {what} (within {timeout:g} s): {error}") from error


def _served(host: str, port: int, seconds: float) -> TCPStore:
    """torch listens on all interfaces; for a loopback address it is given a socket that listens there alone."""
    raise_descriptor_limit()
    options: dict[str, Any] = {"timeout": timedelta(seconds=seconds), "wait_for_workers": False, "multi_tenant": True}
    if is_loopback(host):
        with suppress(OSError):  # it is taken, perhaps by a store of this process
            number = loopback_of(host)
            family = socket.AF_INET6 if ":" in number else socket.AF_INET
            listener = socket.create_server((number, port), family=family, backlog=_BACKLOG)
            port = listener.getsockname()[1]
            options["master_listen_fd"] = listener.detach()
    try:
        return TCPStore(host, port, is_master=True, **options)
    except NotImplementedError:  # in torch 2.6 libuv's server takes no socket
        return TCPStore(host, port, is_master=True, use_libuv=False, **options)
