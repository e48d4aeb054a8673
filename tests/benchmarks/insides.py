"""The benchmarks' uses of engine internals: its ProcessGroups, and communicators that no public call makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch._C._distributed_c10d import FakeProcessGroup
from torch.distributed import HashStore, ProcessGroup

from collshim import Communicator, World
from collshim.settings import options
from collshim.transports.processes.process_groups import ProcessGroups
from collshim.transports.processes.transport import ProcessTransport
from collshim.transports.rendezvous.world import ProcessWorld
from collshim.transports.shared_memory.meeting import Gather


class _Fake(ProcessGroups):
    """Groups that use torch's fake one."""

    def meeting(self, key: str, ranks: Sequence[int]) -> Gather:
        """Return a function that returns this rank's bytes for all ranks."""
        return lambda own: [own] * len(ranks)

    def make(self, key: str, ranks: Sequence[int], *, cuda: bool) -> ProcessGroup:
        """Make a ProcessGroup whose calls complete at once and move nothing."""
        group = ProcessGroup(self.world.store, self.world.rank, len(ranks))
        make: Any = getattr(FakeProcessGroup, "_create_internal", FakeProcessGroup)  # the class itself in older torch
        group._register_backend(torch.device("cpu"), ProcessGroup.BackendType.CUSTOM, make(self.world.rank, len(ranks)))
        group._set_default_backend(ProcessGroup.BackendType.CUSTOM)
        return group


def fake_world(size: int) -> World:
    """Make rank 0's world of ``size`` processes that do not compare their calls, over torch's fake ProcessGroup."""
    with options(transport="gloo"):
        transport = ProcessTransport(_Fake(ProcessWorld(HashStore(), 0, 60.0)), range(size), "fake", checks=False)
    return World(transport, 0, size, range(size))


def unchecked(world: World) -> Communicator:
    """Make a communicator of a world's processes that do not compare their calls, though those of the world may."""
    transport = world.communicator._transport
    if isinstance(transport, ProcessTransport):
        groups = transport.groups
    else:  # a rank that is alone has none
        groups = ProcessGroups(ProcessWorld(HashStore(), 0, world.communicator.timeout))
    ranks = range(world.size)
    apart = ProcessTransport(groups, ranks, "bench/unchecked", checks=False)
    return Communicator(apart, ranks, "unchecked", world.communicator.timeout)


def process_group(comm: Communicator) -> ProcessGroup:
    """Return the ProcessGroup of a communicator between processes; make one if it has none, on all ranks."""
    transport: Any = comm._transport
    if transport.data_group is None:
        transport.data_group = transport.groups.make(f"{transport.key}/data", transport.ranks, cuda=False)
    group: ProcessGroup = transport.data_group
    return group
