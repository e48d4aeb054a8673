"""How a rank comes into the process group: into the world that it has, or into a new one."""

from __future__ import annotations

import os
from typing import Any

import torch

from collshim import world
from collshim.errors import ArgumentTypeError, ArgumentValueError, WorldError, also
from collshim.megengine.distributed._membership import Membership, join
from collshim.megengine.distributed.server import Client, Server, listens, met

_FROM_LAUNCHER = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def start(
    master_ip: str,
    port: int,
    world_size: int,
    rank: int,
    device: int,
    backend: str,
    device_type: str,
    turn: int | None = None,
) -> None:
    """See ``init_process_group``; ``turn`` tells worlds apart that meet at one ``Server``."""
    _require_types({"master_ip": master_ip, "backend": backend, "device_type": device_type}, str)
    _require_types({"port": port, "world_size": world_size, "rank": rank, "device": device}, int)
    _require_place(port, world_size, rank)
    here = world.peek()
    server = None
    if here is None:
        here, server = _made(master_ip, port, world_size, rank, turn)
    _require_agreement(here, world_size, rank)
    name = ("rccl" if torch.version.hip else "nccl") if backend == "auto" else backend
    join(Membership(here, master_ip, port, device, name, device_type, server))


def _require_types(arguments: dict[str, Any], wanted: type) -> None:
    for name, value in arguments.items():
        if not isinstance(value, wanted):
            raise ArgumentTypeError(
                f"init_process_group: {name} is a {type(value).__qualname__}, should be {wanted.__name__}"
            )


def _require_place(port: int, world_size: int, rank: int) -> None:
    wrong = None
    if world_size < 2:
        wrong = f"world_size is {world_size}, should be at least 2"
    elif not 0 <= rank < world_size:
        wrong = f"rank is {rank}, should be from 0 to {world_size - 1}"
    elif not 0 < port < 65536:
        wrong = f"port is {port}, should be from 1 to 65535"
    if wrong is not None:
        raise also(ArgumentValueError, AssertionError)(f"init_process_group: {wrong}")


def _require_agreement(here: world.World, world_size: int, rank: int) -> None:
    if (here.size, here.rank) != (world_size, rank):
        raise WorldError(
            f"init_process_group: rank {rank} of {world_size} as arguments and rank {here.rank} of {here.size} in the "
            "world that this rank has already, should be the same"
        )


def _made(master_ip: str, port: int, world_size: int, rank: int, turn: int | None) -> tuple[world.World, Server | None]:
    """A world of processes: where the launcher says, else where the ``Server`` at ``master_ip:port`` says."""
    world.refuse_thread_ranks()
    if all(name in os.environ for name in _FROM_LAUNCHER):
        return world.init(rank, world_size), None
    # Where no Server listens, rank 0 serves the others itself.
    server = Server(port) if rank == 0 and not listens(master_ip, port) else None
    store = met(Client(master_ip, port), rank, turn)
    return world.init(rank, world_size, address=master_ip, store=store), server
