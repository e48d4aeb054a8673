"""``TCPStore``: a key-value store that ranks share, based on torch's (source: MindSpore 2.10.0)."""

from __future__ import annotations

import datetime
from typing import Any, NoReturn

import torch.distributed

from collshim.adapting.refusing import refuse


class TCPStore:
    """A key-value store, held by one process.

    Args:
        host_name: the store's host.
        port: the store's port.
        world_size: the number of clients; with ``wait_for_workers`` the master waits for them.
        is_master: whether this process holds the values.
        timeout: how long ``get`` waits for a key.
        wait_for_workers: see ``world_size``.
        multi_tenant: has no effect; neither have ``master_listen_fd`` and ``use_libuv``.

    Raises:
        TypeError: an argument has the wrong type, or a method's key is not a string.
        ValueError: ``port`` is not a number from 0 to 65535; ``world_size`` is not positive.
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
        clients = 1 if world_size is None else world_size
        given: dict[str, Any] = {"host_name": host_name, "port": port, "is_master": is_master, "timeout": timeout}
        given |= {"wait_for_workers": wait_for_workers, "world_size": clients}
        for name, kind in _KINDS.items():
            _require("TCPStore", name, given[name], kind)
        if not 0 <= port <= 65535:
            refuse(ValueError, f"For 'TCPStore', the argument 'port' must be legal, but got {port}.")
        if clients <= 0:
            refuse(ValueError, f"For 'TCPStore', the argument 'world_size' must be legal, but got {clients}.")
        self.host = host_name
        self._store = torch.distributed.TCPStore(host_name, port, world_size, is_master, timeout, wait_for_workers)

    def set(self, key: str, value: str | bytes) -> None:
        """Set the value of a key."""
        _require("TCPStore.set", "key", key, str)
        if not isinstance(value, str | bytes):
            _refuse("TCPStore.set", "value", "string or bytes", value)
        self._store.set(key, value.decode() if isinstance(value, bytes) else value)

    def get(self, key: str) -> bytes:
        """Wait until the key exists, and return its value."""
        _require("TCPStore.get", "key", key, str)
        return bytes(self._store.get(key))

    def add(self, key: str, amount: int) -> int:
        """Add ``amount`` to a key's number, which starts at 0, and return the sum."""
        _require("TCPStore.add", "key", key, str)
        if not isinstance(amount, int):
            _refuse("TCPStore.add", "amount", "string or int", amount)
        return int(self._store.add(key, amount))

    def delete_key(self, key: str) -> bool:
        """Delete a key; return whether it existed."""
        _require("TCPStore.delete_key", "key", key, str)
        return bool(self._store.delete_key(key))

    def for_world(self) -> torch.distributed.Store:
        """Return a view of the torch store, with a separate key prefix, for ``init_process_group``."""
        return torch.distributed.PrefixStore("collshim", self._store)


_KINDS = {
    "host_name": str,
    "port": int,
    "is_master": bool,
    "timeout": datetime.timedelta,
    "wait_for_workers": bool,
    "world_size": int,
}


def _require(function: str, name: str, value: Any, kind: type) -> None:
    """Refuse a value of a wrong type, in MindSpore's words."""
    if not isinstance(value, kind):
        _refuse(function, name, "string" if kind is str else kind.__name__, value)


def _refuse(function: str, name: str, wanted: str, value: Any) -> NoReturn:
    text = f"the argument '{name}' must be type of {wanted}, but got '{name}' type : {type(value)}."
    refuse(TypeError, f"For '{function}', {text}")
