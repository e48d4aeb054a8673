"""Make the ProcessGroups of a process over the store of its world, and keep those that are still ending."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import torch
from torch.distributed import PrefixStore, ProcessGroup, ProcessGroupGloo, Store

from collshim.accelerator import ACCELERATOR
from collshim.errors import DeadlineError
from collshim.torch_release import GLOO_KEEPS_ITS_TIMEOUT
from collshim.transports.dropping import never_free
from collshim.transports.processes.backend import accelerators_backend_type
from collshim.transports.processes.gloo_device import CONNECTS_LATER, GlooDevice
from collshim.transports.processes.nccl.group import made_nccl, nccl_is_there
from collshim.transports.rendezvous.making import Assembly, Mesh, Sharing
from collshim.transports.rendezvous.world import ProcessWorld
from collshim.transports.shared_memory.meeting import Gather
from collshim.transports.sockets.descriptors import require_descriptors

_PATIENCE = 10
"""gloo's own deadline in multiples of ours: our waits name the missing ranks, gloo's would only end the group."""
_TRIES = 5
"""How often gloo tries to connect, each time as long as its deadline."""
_OF_GLOO = "0"
"""The prefix of gloo's own keys in the store of a group, as in torch 2.13."""
_STEPS = (Assembly, Sharing)
"""The steps in which the ranks of a group meet."""


def keys_of_making(ranks: Sequence[int], groups: Sequence[str]) -> list[str]:
    """Return the names of the keys that these ranks of the world leave in the store when they make a group.

    ``groups`` are the names of its ProcessGroups.
    """
    by_gloo = [] if CONNECTS_LATER else [f"{_OF_GLOO}/{rank}" for rank in range(len(ranks))]
    by_group = [*by_gloo, *(f"{Mesh.mark}/{rank}" for rank in ranks)]
    marks = [f"{step.mark}/{rank}" for step in _STEPS for rank in ranks]
    return [*marks, *(f"{group}/{name}" for group in groups for name in by_group)]


class ProcessGroups:
    """Makes the ProcessGroups of one process, over the store of its world.

    Args:
        world: the process's world; closing it waits until NCCL's groups have ended.

    Attributes:
        ending: the groups that a thread is ending.
        ending_nccl: NCCL's groups that are ending, by the thread that ends each.
    """

    def __init__(self, world: ProcessWorld) -> None:
        self.world = world
        self.ending: list[list[ProcessGroup]] = []
        self.ending_nccl: dict[threading.Thread, ProcessGroup] = {}
        self._device: GlooDevice | None = None
        self._making, self._device_lock = threading.Lock(), threading.Lock()
        world.at_close(self._await_nccl, abandon=self._abandon)

    def meeting(self, key: str, ranks: Sequence[int]) -> Gather:
        """Return the function by which ranks that make a group exchange bytes, twice at most; see ``meet``.

        Raises:
            WorldError: the process may not open as many files as the group can need; the other ranks still wait.
        """
        require_descriptors(len(ranks))
        world = self.world
        steps = (step(world.client, world.stalls, world.rank, ranks, key, world.refuse) for step in _STEPS)

        def gather(own: bytes) -> list[bytes]:
            words = next(steps).gather(own.hex(), world.making_deadline, world.timeout)
            return [bytes.fromhex(word) for word in words]

        world.announce()
        return gather

    def make(self, key: str, ranks: Sequence[int], *, cuda: bool) -> ProcessGroup:
        """Make a ProcessGroup of ranks that have met: gloo for CPU tensors and, if ``cuda``, NCCL for CUDA tensors.

        Raises:
            DeadlineError, PeerError: a rank is missing, or the store does not answer.
            WorldError: the process may not open as many files as the group needs.
        """
        require_descriptors(len(ranks))
        with self._store() as store:
            return self._make(PrefixStore(key, store), key, ranks, cuda)

    @contextmanager
    def _store(self) -> Iterator[Store]:
        """Yield the store by which gloo makes a group; threads that make groups concurrently have a connection each.

        While gloo waits in the store for the other ranks, no other request on its connection is answered. Two threads
        that share a connection would wait for each other if another rank's threads arrived in a different order.
        """
        if not self._making.acquire(blocking=False):
            yield self.world.another_store()
            return
        try:
            yield self.world.store
        finally:
            self._making.release()

    def _make(self, store: Store, key: str, ranks: Sequence[int], cuda: bool) -> ProcessGroup:
        world = self.world
        rank, size = list(ranks).index(world.rank), len(ranks)
        group = ProcessGroup(store, rank, size)
        device, seconds = self._gloo_device(), world.seconds_left()
        mesh = Mesh(world.client, world.stalls, world.rank, ranks, key, world.refuse)
        connect = partial(self._gloo, store, rank, size, device, seconds)
        gloo = mesh.made(connect, world.making_deadline, world.timeout)
        group._register_backend(torch.device("cpu"), ProcessGroup.BackendType.GLOO, gloo)
        group._set_default_backend(ProcessGroup.BackendType.GLOO)
        if cuda and nccl_is_there():
            self._add_nccl(group, store, key, ranks)
        return group

    def _add_nccl(self, group: ProcessGroup, store: Store, key: str, ranks: Sequence[int]) -> None:
        nccl = made_nccl(PrefixStore("nccl", store), key, ranks, group.rank(), self.world.timeout)
        group._register_backend(torch.device(ACCELERATOR), accelerators_backend_type(), nccl)
        named: Any = group  # its stubs have a type for names that older releases lack
        named._set_group_name(key)
        group._set_group_desc("collshim")

    def _gloo(self, store: Store, rank: int, size: int, device: GlooDevice, seconds: float) -> Any:
        options: Any = ProcessGroupGloo._Options()  # type: ignore[attr-defined]  # not in torch's stubs
        patience = _PATIENCE * self.world.timeout if GLOO_KEEPS_ITS_TIMEOUT else seconds / _TRIES
        options._timeout = timedelta(seconds=patience)
        with device.listening() as options._devices:
            gloo = ProcessGroupGloo(store, rank, size, options)
        gloo._set_default_timeout(timedelta(seconds=_PATIENCE * self.world.timeout))
        return gloo

    def _gloo_device(self) -> GlooDevice:
        with self._device_lock:
            if self._device is None:
                self._device = GlooDevice(self.world.interface, self.world.address)
            return self._device

    def _await_nccl(self) -> None:
        """Wait until NCCL's groups have ended, which can need the other ranks.

        A group that has not ended at the deadline stays with its thread: torch would wait for it before it aborts, and
        then abort a communicator that is gone.
        """
        limit = time.monotonic() + self.world.timeout
        for thread in list(self.ending_nccl):
            thread.join(max(0.0, limit - time.monotonic()))
        late = list(self.ending_nccl.values())
        never_free(late)
        if late:
            groups = "1 group" if len(late) == 1 else f"{len(late)} groups"
            text = f"NCCL did not shut down {groups} within {self.world.timeout:g} s"
            raise DeadlineError(f"closing the world: {text}; other ranks might not have closed them")

    def _abandon(self) -> None:
        """Keep the groups that are still ending: their destructors would wait for calls that no other rank makes."""
        for groups in self.ending:
            never_free(groups)
