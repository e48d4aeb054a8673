"""Let processes join a world: each claims its rank once, and all must have the same size and the same versions."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Callable, Sequence
from secrets import token_hex
from typing import Any, NoReturn

import torch

from collshim.errors import WorldError
from collshim.transports.rendezvous.client import StoreClient
from collshim.transports.sockets.connections import Connections

_GRACE = 2.0
"""How many seconds the ranks of a world have to publish their records if they disagree."""

_CONNECT_SECONDS = 1.0

_MOST_NAMED = 64
"""The largest number of ranks that an error names."""

_WHAT = {
    "size": "the size of the world",
    "collshim": "the version of collshim",
    "torch": "the version of torch",
}
"""The properties that all ranks must share."""


class Enrolment:
    """A rank's record when it joins a world, which is compared with the record of the first rank that joined.

    Args:
        client: the world's store.
        rank, size: the rank that this process was given, and the size of the world.
        connections: the connections, which listen at ``host``; this shows other processes that this process is alive.
        has_left: returns whether the process that had a rank has left the world.

    Attributes:
        is_member: whether no other process has this rank.
        is_refused: whether this rank knows that the ranks disagree.
    """

    is_member = False
    is_refused = False

    def __init__(
        self,
        client: StoreClient,
        rank: int,
        size: int,
        connections: Connections,
        host: str,
        has_left: Callable[[int], bool],
    ) -> None:
        self._client = client
        self._connections = connections
        self._has_left = has_left
        self._rank = rank
        address, machine = (host, connections.port), socket.gethostname()
        versions = {"collshim": sys.modules["collshim"].__version__, "torch": str(torch.__version__)}
        self._own: dict[str, Any] = {"size": size, **versions, "rank": rank, "place": address, "host": machine}
        self._own |= {"pid": os.getpid(), "token": token_hex(8)}
        self._conflict = ""

    def join(self, seconds: float) -> str:
        """Claim this rank, and compare the properties that all ranks must share, within that many seconds.

        Returns:
            A random name of the world, which is the same on all its ranks.

        Raises:
            WorldError: another process has this rank, or had it; or the ranks disagree.
        """
        other = self._claim(f"members/{self._rank}", seconds)
        if other["token"] != self._own["token"]:
            raise WorldError(
                f"rank {self._rank} joined twice: process {other['pid']} on {other['host']} has already joined the "
                f"world as rank {self._rank}, and process {self._own['pid']} on {self._own['host']} was given the same "
                "rank (RANK, or the rank passed to init)"
            )
        self.is_member = True
        first = self._claim("members/first", seconds)
        self._conflict = f"conflict/{first['token']}"
        for what in _WHAT:
            if first[what] != self._own[what]:
                self._object(what, max(first["size"], self._own["size"]))
        return str(first["token"])

    def _claim(self, key: str, seconds: float) -> dict[str, Any]:
        """Write this rank's record under a key; return it, or the record that another process wrote earlier.

        The record of a process that ended before the world was made is replaced.
        """
        own, found = json.dumps(self._own), ""
        while True:
            found = self._client.first(key, own, found, seconds=seconds)
            record: dict[str, Any] = json.loads(found)
            if record["token"] == self._own["token"] or self._has_left(record["rank"]) or _lives(*record["place"]):
                return record

    def _object(self, what: str, size: int) -> NoReturn:
        """Report to all ranks the values of the ranks that have joined, and raise the error."""
        keys, limit = [f"members/{rank}" for rank in range(min(size, _MOST_NAMED))], time.monotonic() + _GRACE
        texts = self._client.get(keys)
        while "" in texts and time.monotonic() < limit:
            time.sleep(0.02)
            texts = self._client.get(keys)
        records = [json.loads(text) for text in texts if text]
        values = ", ".join(f"rank {record['rank']} has {record[what]}" for record in records)
        text = self._client.first(self._conflict, f"the ranks disagree on {_WHAT[what]}: {values}, should be the same")
        self.is_refused = True
        self._connections.open({record["rank"]: tuple(record["place"]) for record in records})
        self._connections.talk.object([record["rank"] for record in records if record["rank"] != self._rank], text)
        raise WorldError(text)

    def refuse(self) -> None:
        """Raise an error if a rank has objected."""
        text = self._client.get([self._conflict])[0] if self._conflict else ""
        if text:
            self.is_refused = True
            raise WorldError(text)

    def others(self) -> Sequence[int]:
        """Return the ranks that have joined, including any beyond the size that this rank has for the world."""
        keys = [f"members/{rank}" for rank in range(_MOST_NAMED)]
        return [rank for rank, text in enumerate(self._client.get(keys)) if text and rank != self._rank]


def _lives(host: str, port: int) -> bool:
    """Return whether the process that listens there might be alive: not if the connection fails immediately."""
    try:
        socket.create_connection((host, port), timeout=_CONNECT_SECONDS).close()
    except TimeoutError:
        return True
    except OSError:
        return False
    return True
