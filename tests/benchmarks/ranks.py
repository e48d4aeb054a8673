"""What every rank of a measured world runs, and how worlds of threads and of processes take turns."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import torch.distributed as dist
from torch.distributed import HashStore, PrefixStore, ProcessGroup

import collshim
from collshim import Communicator
from collshim.transports.processes.store import ProcessWorld
from collshim.transports.processes.transport import ProcessTransport
from collshim.world import World
from tests.benchmarks.contenders import bare, engine, operands, torch_distributed
from tests.benchmarks.measure import Contender, Samples, in_turns, joined, slowest

Repeats = Mapping[int, int]
"""How often a call is repeated, by bytes that each rank gives."""

Cells = dict[int, Samples]
"""Times by bytes that each rank gives."""

DEADLINE = 600.0
"""Seconds that one world may take."""


class Ends(NamedTuple):
    """A process's ends of the groups that are compared: all of the same ranks, over the same interface."""

    checked: Communicator
    unchecked: Communicator
    bare: ProcessGroup
    barrier: Contender


def measured(op: str, size: int, repeats: Repeats, blocks: int, thorough: bool) -> Cells:
    """One collective on ``size`` ranks at every size, threads and processes in turns by blocks.

    One rank needs nobody, whatever it is: it is measured once, as a process.
    """
    found: list[Cells] = []
    for _ in range(blocks):
        with collshim.options(check=True):
            arguments = (op, repeats, thorough)
            cells = _slowest(
                collshim.launch(among_processes, size, ranks="processes", args=arguments, timeout=DEADLINE)
            )
        if size > 1:
            threads = _slowest(collshim.launch(among_threads, size, args=(op, repeats), timeout=DEADLINE))
            cells = {nbytes: threads[nbytes] | cells[nbytes] for nbytes in repeats}
        found.append(cells)
    return {nbytes: joined([cells[nbytes] for cells in found]) for nbytes in repeats}


def _slowest(ranks: list[Cells]) -> Cells:
    return {nbytes: slowest([rank[nbytes] for rank in ranks]) for nbytes in ranks[0]}


def among_threads(op: str, repeats: Repeats) -> Cells:
    """One rank of a world of threads, whose calls are always compared."""
    comm = collshim.current().communicator
    barrier = partial(_meet, comm)
    return {
        nbytes: in_turns(_both_kinds(comm, "threads", op, *operands(op, nbytes, comm.size)), count, barrier)
        for nbytes, count in repeats.items()
    }


def among_processes(op: str, repeats: Repeats, thorough: bool) -> Cells:
    """One rank of a world of processes: the engine with and without the check, what is underneath, and torch's own."""
    with _ends(collshim.current()) as ends:
        return {
            nbytes: in_turns(_contenders(ends, op, nbytes, thorough), count, ends.barrier)
            for nbytes, count in repeats.items()
        }


def _both_kinds(comm: Communicator, name: str, op: str, given: Any, out: Any) -> dict[str, Contender]:
    there = given.numpy()
    into = there if out is given else out.numpy()
    return {name: engine(comm, op, given, out), f"{name}, NumPy": engine(comm, op, there, into)}


def _contenders(ends: Ends, op: str, nbytes: int, thorough: bool) -> dict[str, Contender]:
    size = ends.checked.size
    given, out = operands(op, nbytes, size)
    found = {"bare": bare(ends.bare, op, given, out), "torch.distributed": torch_distributed(op, given, out)}
    if size == 1:
        return found | _both_kinds(ends.checked, "engine", op, given, out)
    checked = _both_kinds(ends.checked, "check on", op, given, out)
    if not thorough:
        checked.pop("check on, NumPy")
    return found | _both_kinds(ends.unchecked, "check off", op, given, out) | checked


def _meet(comm: Communicator) -> None:
    comm.barrier().wait()


@contextmanager
def _ends(world: World) -> Iterator[Ends]:
    """The groups under comparison, and one more for the barriers between calls; torch's default group is made too."""
    _use_loopback()
    rendezvous, ranks = _rendezvous(world), range(world.size)
    transport = ProcessTransport(rendezvous, ranks, "bench/unchecked", checks=False)
    unchecked = Communicator(transport, ranks, "unchecked", world.communicator.timeout)
    between = rendezvous.group("bench/between", ranks, cuda=False)
    store = PrefixStore("bench/default", world.store)
    dist.init_process_group("gloo", store=store, rank=world.rank, world_size=world.size)
    try:
        yield Ends(world.communicator, unchecked, transport.data_group, lambda: between.barrier().wait())
    finally:
        dist.destroy_process_group()
        unchecked.close()


def _use_loopback() -> None:
    """Let torch's own group use the loopback interface too, as the engine does between processes of one machine."""
    loopback = [name for _, name in socket.if_nameindex() if name.startswith("lo")]
    os.environ.setdefault("GLOO_SOCKET_IFNAME", loopback[0])


def _rendezvous(world: World) -> ProcessWorld:
    """The world's own; a rank that is alone has none and gets one."""
    transport = world.communicator._transport
    if isinstance(transport, ProcessTransport):
        return transport.world
    return ProcessWorld(HashStore(), 0, world.communicator.timeout)
