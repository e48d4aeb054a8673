"""The ranks' key-value store (MegEngine 1.13.0, ``megengine.distributed.server``): a store of torch's behind its names.

Values are marshalled as MegEngine's are (XML-RPC): None, booleans, numbers of 32 bits, text, bytes, dates, lists and
dictionaries with text as keys; a tuple comes back as a list.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from xmlrpc.client import dumps, loads

from collshim import options
from collshim.errors import DeadlineError

__all__ = ["Client", "Server"]


class Server:
    """Serves the ranks of ``init_process_group`` from this process, as long as the object lives.

    Attributes:
        py_server_port: the port, to be given to ``init_process_group``.
        mm_server_port: the same; MegEngine has a second one.

    Args:
        port: 0 for a free one.
    """

    def __init__(self, port: int = 0) -> None:
        from torch.distributed import TCPStore

        self._store = TCPStore("localhost", port, is_master=True, wait_for_workers=False, timeout=_patience())
        self.py_server_port: int = self._store.port
        self.mm_server_port: int = self._store.port


class Client:
    """One rank's end of the store; every wait ends with DeadlineError after the ``timeout`` of ``collshim.options``.

    Args:
        master_ip: where the ``Server`` is, or rank 0.
        port: its port.
    """

    def __init__(self, master_ip: str, port: int) -> None:
        self.master_ip = master_ip
        self.port = port
        self._turns: Counter[str] = Counter()
        self.connect()

    def connect(self) -> None:
        """Connect, again where it was before."""
        from torch.distributed import PrefixStore

        self._store = PrefixStore("megengine", connected(self.master_ip, self.port))

    def get_mm_server_port(self) -> int:
        """The port of the server."""
        return self.port

    def user_set(self, key: str, val: Any) -> bool:
        """Put a value under a key, over what is there; True."""
        self._put(f"user/{key}", val)
        return True

    def user_get(self, key: str) -> Any:
        """The value under a key, once somebody has put one."""
        return self._get(f"user/{key}")

    def user_pop(self, key: str) -> Any:
        """The value under a key, once somebody has put one, and take it away."""
        return self._pop(f"user/{key}")

    def bcast_val(self, val: Any, key: str, size: int) -> Any:
        """Give a value to ``size - 1`` others under a key; they call with None and get it, the giver gets None.

        The n-th call of each of the ``size`` ranks for a key belongs to the n-th call of the others.
        """
        turn = f"bcast/{key}/{self._turns[key]}"
        self._turns[key] += 1
        if val is not None:
            self._put(turn, val)
            return None
        found = self._get(turn)
        if self._store.add(f"{turn}/read", 1) == size - 1:
            self._drop(turn, f"{turn}/read")
        return found

    def group_barrier(self, key: str, size: int) -> None:
        """Return once ``size`` ranks have called for this key."""
        came = self._store.add(f"barrier/{key}", 1)
        turn = f"barrier/{key}/{(came - 1) // size}"
        if came % size == 0:
            self._put(turn, True)
        self._get(turn)

    def set_is_grad(self, key: str, is_grad: bool) -> None:
        """Say whether the tensor that travels under ``key`` needs a gradient; collshim itself does not ask."""
        self._put(f"is_grad/{key}", is_grad)

    def check_is_grad(self, key: str) -> bool:
        """What ``set_is_grad`` said, once; waits for it."""
        return bool(self._pop(f"is_grad/{key}"))

    def set_remote_tracer(self, key: str, tracer_set: Any) -> None:
        """Say which tracers a tensor that travels under ``key`` has; collshim itself does not ask."""
        self._put(f"tracer/{key}", tracer_set)

    def check_remote_tracer(self, key: str) -> Any:
        """What ``set_remote_tracer`` said, once; waits for it."""
        return self._pop(f"tracer/{key}")

    def _put(self, key: str, val: Any) -> None:
        self._store.set(key, dumps((val,), allow_none=True))

    def _get(self, key: str) -> Any:
        with _deadline(key):
            text = self._store.get(key).decode()
        (val,), _ = loads(text, use_builtin_types=True)
        return val

    def _pop(self, key: str) -> Any:
        val = self._get(key)
        self._drop(key)
        return val

    def _drop(self, *keys: str) -> None:
        for key in keys:
            self._store.delete_key(key)


def connected(master_ip: str, port: int) -> Any:
    """A torch store, connected to the one at this address."""
    from torch.distributed import TCPStore

    return TCPStore(master_ip, port, is_master=False, wait_for_workers=False, timeout=_patience())


def _patience() -> timedelta:
    return timedelta(seconds=options.get().timeout)


@contextmanager
def _deadline(key: str) -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # torch's DistStoreError is one
        raise DeadlineError(f"the store has no value for {key!r}: {error}") from error
