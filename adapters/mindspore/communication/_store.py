"""``TCPStore``: a key-value store that ranks share (source: MindSpore 2.10.0); torch's own beneath."""

from __future__ import annotations

import datetime
from typing import Any

import torch.distributed

from collshim.adapting.refusing import refuse


class TCPStore:
    """Values by key, at one process's address.

    Args:
        host_name: where the store is.
        port: its port.
        world_size: how many clients it has; with ``wait_for_workers`` the master waits for them.
        is_master: whether this process keeps the values.
        timeout: how long ``get`` waits for a key.
        wait_for_workers: see ``world_size``.
        multi_tenant: accepted, as ``master_listen_fd`` and ``use_libuv`` are.

    Raises:
        TypeError: ``host_name`` is no string, or ``port`` no int.
    """

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: datetime.timedelta = datetime.timedelta(seconds=300),  # as MindSpore has it; immutable
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: Any = None,
        use_libuv: bool = True,
    ) -> None:
        if not isinstance(host_name, str) or not isinstance(port, int):
            refuse(TypeError, f"TCPStore: must have a host's name and a port, but got {host_name!r} and {port!r}")
        self._store = torch.distributed.TCPStore(host_name, port, world_size, is_master, timeout, wait_for_workers)

    def set(self, key: str, value: str | bytes) -> None:
        """The key has this value."""
        self._store.set(key, value.decode() if isinstance(value, bytes) else value)

    def get(self, key: str) -> bytes:
        """The key's value, waited for."""
        return bytes(self._store.get(key))

    def add(self, key: str, amount: int) -> int:
        """The key's number, from 0, is larger by ``amount``; that."""
        return int(self._store.add(key, amount))

    def delete_key(self, key: str) -> bool:
        """The key is gone; whether it was there."""
        return bool(self._store.delete_key(key))
