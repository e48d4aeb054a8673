"""Joins a rank to the process group, in the world that it already has or in a new one."""

from __future__ import annotations

import os
import time
from typing import Any

from collshim import world
from collshim.environment import forget
from collshim.errors import ArgumentTypeError, ArgumentValueError, WorldError, also
from collshim.megengine._native import become_native
from collshim.megengine.device import set_default_device
from collshim.megengine.distributed._membership import Membership, join, membership
from collshim.megengine.distributed.server import Client, Server, listens, world_store
from collshim.megengine.random._generator import seed

_BACKENDS = ("nccl", "rccl", "auto")
_DEVICE_TYPES = ("xpu", "gpu", "cuda", "rocm")
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
    """Join the process group, see ``init_process_group``; ``turn`` is the number of the world of one ``Server``."""
    _require_types({"master_ip": master_ip, "backend": backend, "device_type": device_type}, str)
    _require_types({"port": port, "world_size": world_size, "rank": rank, "device": device}, int)
    _require_known(backend, device_type)
    earlier = membership()
    if earlier is not None:
        raise also(WorldError, AssertionError)(
            f"init_process_group should be called only once: this is {earlier.where()} already"
        )
    _require_place(port, world_size, rank)
    current_world = world.peek()
    server = None
    if current_world is None:
        current_world, server = _new_world(master_ip, port, world_size, rank, turn)
    _require_agreement(current_world, world_size, rank)
    join(Membership(current_world, master_ip, port, device, backend, device_type, server))
    set_default_device(f"{device_type}{device}")
    seed(int(time.time()) + rank)


def _require_types(arguments: dict[str, Any], expected: type) -> None:
    for name, value in arguments.items():
        if not isinstance(value, expected):
            raise ArgumentTypeError(
                f"init_process_group: {name} is a {type(value).__qualname__}, should be {expected.__name__}"
            )


def _require_known(backend: str, device_type: str) -> None:
    if backend not in _BACKENDS:
        raise ArgumentValueError(f"backend should be one of {_BACKENDS} but got {backend}")
    if device_type not in _DEVICE_TYPES:
        raise ArgumentValueError(
            f"{device_type} is not a valid distributed device type: it should be one of {_DEVICE_TYPES}"
        )


def _require_place(port: int, world_size: int, rank: int) -> None:
    problem = None
    if world_size < 2:
        problem = f"world_size is {world_size}, should be at least 2"
    elif not 0 <= rank < world_size:
        problem = f"rank is {rank}, should be from 0 to {world_size - 1}"
    elif not 0 < port < 65536:
        problem = f"port is {port}, should be from 1 to 65535"
    if problem is not None:
        raise also(ArgumentValueError, AssertionError)(f"init_process_group: {problem}")


def _require_agreement(current_world: world.World, world_size: int, rank: int) -> None:
    if (current_world.size, current_world.rank) != (world_size, rank):
        raise WorldError(
            f"init_process_group: rank {rank} of {world_size} as arguments and rank {current_world.rank} of "
            f"{current_world.size} in the world that this rank has already, should be the same"
        )


def _new_world(
    master_ip: str, port: int, world_size: int, rank: int, turn: int | None
) -> tuple[world.World, Server | None]:
    """Make a world of processes, from the launcher's variables or, without them, through the ``Server``."""
    world.refuse_thread_ranks()
    if os.environ.get("WORLD_SIZE") == "1":  # a launcher started a single process, which starts the ranks
        forget(os.environ)
    if all(name in os.environ for name in _FROM_LAUNCHER):
        return world.init(rank, world_size), None
    become_native()
    # If no Server listens, rank 0 serves the others itself.
    server = Server._at(master_ip, port) if rank == 0 and not listens(master_ip, port) else None
    store = world_store(Client(master_ip, port), rank, turn)
    return world.init(rank, world_size, address=master_ip, store=store), server
