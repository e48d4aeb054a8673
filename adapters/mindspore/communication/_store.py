"""``TCPStore``: a key-value store that ranks share (source: MindSpore 2.10.0), over torch's own."""

from __future__ import annotations

import datetime
from typing import Any

import torch.distributed

from collshim.adapting.refusing import refuse


class TCPStore:
    """A store of values by key, at one process's address.

    Args:
        host_name: the store's host.
        port: the store's port.
        world_size: the number of clients; with ``wait_for_workers`` the master waits for them.
        is_master: whether this process holds the values.
        timeout: how long ``get`` waits for a key.
        wait_for_workers: see ``world_size``.
        multi_tenant: accepted, as ``master_listen_fd`` and ``use_libuv`` are.

    Raises:
        TypeError: ``host_name`` is not a string, or ``port`` not an int.
    """

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: datetime.timedelta = datetime.timedelta(seconds=300),  # MindSpore's default; immutable
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: Any = None,
        use_libuv: bool = True,
    ) -> None:
        if not isinstance(host_name, str) or not isinstance(port, int):
            refuse(TypeError, f"TCPStore: must have a host's name and a port, but got {host_name!r} and {port!r}")
        self._store = torch.distributed.TCPStore(host_name, port, world_size, is_master, timeout, wait_for_workers)

    def set(self, key: str, value: str | bytes) -> None:
        """Set the value of a key."""
        self._store.set(key, value.decode() if isinstance(value, bytes) else value)

    def get(self, key: str) -> bytes:
        """Wait for a key, and return its value."""
        return bytes(self._store.get(key))

    def add(self, key: str, amount: int) -> int:
        """Add ``amount`` to a key's number, which starts from 0, and return it."""
        return int(self._store.add(key, amount))

    def delete_key(self, key: str) -> bool:
        """Delete a key; return whether it existed."""
        return bool(self._store.delete_key(key))
