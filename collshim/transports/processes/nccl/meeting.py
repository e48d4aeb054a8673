"""Let the ranks meet before a group's first call on GPUs, in which NCCL connects them without a deadline."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from typing import Any

from collshim.accelerator import module
from collshim.calls.call import in_the_world
from collshim.errors import CommunicationError, DeadlineError, PeerError
from collshim.transports.processes.group import Group, GroupWork
from collshim.transports.rendezvous.client import StoreSilentError
from collshim.transports.rendezvous.stalls import comes_by
from collshim.transports.waiting import Watched, missing_text, watch


class Meeting(Watched):
    """The wait for the ranks of a group to make the first call on their GPUs."""

    def __init__(self, group: Group, world: Any, work: GroupWork, key: str, ranks: Sequence[int]) -> None:
        self._group = group
        self._client = world.client
        self._seconds = world.timeout
        self._work = work
        self._keys = {rank: f"{key}/{rank}" for rank in ranks}

    def hold(self, device: int, limit: float) -> None:
        """Wait for all ranks; raise if some have not arrived by the time ``limit``, or if two have the same GPU."""
        self._client.set(self._keys[self._group.rank], _gpu(device), self._seconds)
        watch(self, self._have_come, limit)
        gpus = self._read()
        for gpu in gpus.values():
            same = [other for other in gpus if gpus[other] == gpu]
            if len(same) > 1:
                name = " and ".join(map(str, same))
                text = f"{self._work.call}: ranks {name} are on one GPU, {gpu}, should be on one each"
                others = "only ranks that are threads of one process can share a GPU"
                where = in_the_world(self._group.ranks)
                raise CommunicationError(f"{text} (torch.cuda.set_device); {others}{where}")

    def _read(self) -> dict[int, str]:
        return dict(zip(self._keys, self._client.get([*self._keys.values()]), strict=True))

    def _have_come(self, seconds: float) -> bool:
        keys = [*self._keys.values()]
        return comes_by(lambda: self._has(keys), time.monotonic() + seconds)

    def _has(self, keys: Sequence[str]) -> bool:
        try:
            return bool(self._client.check(*keys))
        except StoreSilentError:
            return False

    def report(self) -> None:
        """See ``Watched``."""
        self._work.report()

    def clear(self) -> None:
        """See ``Watched``."""
        self._work.clear()

    def check(self) -> None:
        """Raise an error if the group has ended, or if a missing rank has left."""
        self._work.raise_if_ended()
        if any(self._group.stalls.any_left([self._group.ranks[rank]], self._group.key) for rank in self._absent()):
            raise self._end(PeerError, "no other rank will arrive")

    def expire(self) -> None:
        """See ``Watched``."""
        raise self._end(DeadlineError, "the deadline passed")

    def _absent(self) -> list[int]:
        try:
            return [rank for rank, gpu in self._read().items() if not gpu]
        except StoreSilentError:
            return []

    def _end(self, kind: type[PeerError] | type[DeadlineError], why: str) -> CommunicationError:
        group = self._group
        where = [(rank, group.stalls.whereabouts(group.ranks[rank], group.key)) for rank in self._absent()]
        return group.end(kind, f"{missing_text(str(self._work.call), where, [], group.ranks)} ({why})")


def _gpu(device: int) -> str:
    """Return a name that identifies a GPU among those of all machines."""
    found = module().get_device_properties(device)
    return f"{found.name} {getattr(found, 'uuid', device)} of {socket.gethostname()}"
