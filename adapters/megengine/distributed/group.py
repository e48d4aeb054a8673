"""The process group, and a rank's access to it (MegEngine 1.13.0, ``megengine.distributed.group``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from collshim.megengine.distributed._membership import joined, membership
from collshim.megengine.distributed._ranks import WORLD, Group, communicator
from collshim.megengine.distributed._start import start
from collshim.megengine.distributed.server import Client

__all__ = [
    "WORLD",
    "Group",
    "get_backend",
    "get_client",
    "get_mm_server_addr",
    "get_py_server_addr",
    "get_rank",
    "get_world_size",
    "group_barrier",
    "init_process_group",
    "is_distributed",
    "new_group",
    "override_backend",
]


def init_process_group(
    master_ip: str,
    port: int,
    world_size: int,
    rank: int,
    device: int,
    backend: str = "auto",
    device_type: str = "xpu",
) -> None:
    """Join this rank to the process group; every rank calls it once, with the same first three arguments.

    A rank that already has a world (because ``collshim.launch`` started it, or a launcher that set ``RANK`` and
    ``WORLD_SIZE``) joins that world, and ``master_ip`` and ``port`` are only recorded. Otherwise the ranks find each
    other through a ``Server`` at ``master_ip:port``; rank 0 starts one if none listens.

    Args:
        master_ip: the host of the ``Server``.
        port: the port of the ``Server``, above 0.
        world_size: the number of ranks, at least 2.
        rank: this rank, from 0.
        device: the number of this rank's device; it appears in ``Group.comp_node``.
        backend: ``"auto"``, ``"nccl"`` or ``"rccl"``, which ``get_backend`` returns. It has no other effect: collshim
            chooses the transport by the tensors.
        device_type: the kind in device names: ``"xpu"``, ``"gpu"``, ``"cuda"`` or ``"rocm"``.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: ``backend`` or ``device_type`` is unknown.
        AssertionError: this is a second call; ``world_size`` is below 2, ``rank`` is outside it, or ``port`` is not
            above 0.
        WorldError: the world that this rank already has contradicts ``world_size`` or ``rank``.
    """
    start(master_ip, port, world_size, rank, device, backend, device_type)


def new_group(proc_ranks: Sequence[int]) -> Group:
    """Return the ``Group`` of these ranks; only the group's members call this, and nothing is sent."""
    return Group(proc_ranks)


def is_distributed() -> bool:
    """Return whether ``init_process_group`` has been called on this rank."""
    return membership() is not None


def get_rank() -> int:
    """Return this rank's number in the world; 0 before ``init_process_group``."""
    member = membership()
    return 0 if member is None else member.world.rank


def get_world_size() -> int:
    """Return the number of ranks in the world; 1 before ``init_process_group``."""
    member = membership()
    return 1 if member is None else member.world.size


def get_backend() -> str:
    """Return the backend's name; AssertionError before ``init_process_group``."""
    return joined().backend


@contextmanager
def override_backend(new_backend: str) -> Iterator[None]:
    """Use the backend name ``new_backend`` inside the block; it is only a name, see ``init_process_group``."""
    member = joined()
    member.backend, old_backend = new_backend, member.backend
    try:
        yield
    finally:
        member.backend = old_backend


def get_py_server_addr() -> tuple[str, int]:
    """Return the ``(master_ip, port)`` passed to ``init_process_group``; AssertionError before it."""
    return joined().master_ip, joined().port


def get_mm_server_addr() -> tuple[str, int]:
    """Return ``get_py_server_addr()``: collshim needs one port, MegEngine two."""
    return get_py_server_addr()


def get_client() -> Client:
    """Return this rank's client of the key-value store of the ``Server`` at ``master_ip:port``.

    Raises:
        AssertionError: ``init_process_group`` was not called.
        PeerError: no ``Server`` listens; if this rank already had a world, the program must start one.
    """
    return joined().client


def group_barrier(group: Group = WORLD) -> None:
    """Wait until every rank of ``group`` has called this; do nothing before ``init_process_group``.

    Raises:
        AssertionError: ``group`` is not a ``Group``.
    """
    if membership() is not None:
        communicator(group).barrier().wait()
