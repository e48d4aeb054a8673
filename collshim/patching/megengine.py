"""The real MegEngine 1.13, whose collectives collshim carries between CPU ranks; MegEngine has none there.

This replaces ``distributed.functional.collective_comm``, which all collectives call; the two operations that
``remote_send`` and ``remote_recv`` apply there; and ``init_process_group``, which also makes collshim's world.
Signatures, shapes, gradients of operations, the server and the launcher remain MegEngine's.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.util import Finalize
from typing import Any

import numpy as np

from collshim import world
from collshim.communicator import Communicator
from collshim.errors import CollshimError, WorldError, also
from collshim.patching.replacing import Foreign, Replacing
from collshim.transports.rendezvous.serving import reach_store, serve_store

_PARTING = 20.0
"""Seconds that a rank waits for the others before it ends."""


def apply(patch: Replacing) -> None:
    """Replace the functions named above."""
    functional = importlib.import_module("megengine.distributed.functional")
    group = importlib.import_module("megengine.distributed.group")
    common = importlib.import_module("megengine.core._imperative_rt.common")
    carrier = _Carrier(functional, group)
    group._devices.add("cpu")
    patch.at_end(lambda: group._devices.discard("cpu"))
    patch.replace(common, "init_nccl_env", lambda *arguments: None)
    patch.replace(functional, "_device2backend", {**functional._device2backend, "cpu": "nccl"})
    patch.replace(functional, "apply", carrier.apply)
    patch.replace_everywhere(functional.collective_comm, carrier.collective_comm)
    patch.replace_everywhere(group.init_process_group, carrier.wrap_init(group.init_process_group))


class _Carrier:
    """Carries MegEngine's collectives through collshim, in this process and in processes that it forks."""

    def __init__(self, functional: Foreign, group: Foreign) -> None:
        self.functional, self.group = functional, group
        self.own_apply = functional.apply
        self.tensor = importlib.import_module("megengine.tensor").Tensor
        self.is_tracing = importlib.import_module("megengine.jit.tracing").is_tracing
        self.node = _differentiable(self)
        self.subgroups: dict[tuple[int, ...], Communicator] = {}

    def wrap_init(self, init_process_group: Callable[..., None]) -> Callable[..., None]:
        """Return MegEngine's function, extended to also make collshim's world."""

        def init(
            master_ip: str,
            port: int,
            world_size: int,
            rank: int,
            device: int,
            backend: str = "auto",
            device_type: str = "xpu",
        ) -> None:
            init_process_group(master_ip, port, world_size, rank, device, backend, device_type)
            self.join(master_ip, world_size, rank)

        init.__doc__ = init_process_group.__doc__
        return init

    def join(self, host: str, size: int, rank: int) -> None:
        """Make the world through a store that rank 0 serves; MegEngine's own server passes its port to the others."""
        if world.peek() is not None:
            return
        client = self.group.get_client()
        if rank == 0:
            store = serve_store(host)
            for other in range(1, size):
                client.user_set(f"collshim store of {other}", store.port)
        else:
            store = reach_store(host, client.user_pop(f"collshim store of {rank}"))
        world.init(rank, size, address=host, store=store, overrides=True)
        Finalize(None, self.part, exitpriority=20)

    def part(self) -> None:
        """Leave the world; unless this rank failed, first wait for the others, which may still read data it sent."""
        current = world.peek()
        if current is None:
            return
        failed = sys.exc_info()[0] or getattr(sys, "last_type", None)  # in a child; in the program
        if not failed:
            with suppress(CollshimError):
                current.communicator.barrier().wait(_PARTING)
        world.close()

    def communicator(self, group: Foreign) -> Communicator:
        """Return the communicator of MegEngine's group; groups of the same ranks share one."""
        current = world.peek()
        if current is None:
            raise also(WorldError, AssertionError)("please call init_process_group first")
        ranks = tuple(group.proc_ranks)
        if ranks == current.communicator.ranks:
            return current.communicator
        if ranks not in self.subgroups:
            made = current.communicator.subgroup(ranks, kept=True)
            if made is None:
                raise also(WorldError, AssertionError)(f"group {list(ranks)} does not contain rank {current.rank}")
            self.subgroups[ranks] = made
        return self.subgroups[ranks]

    def collective_comm(self, inp: Foreign, mode: Foreign, group: Foreign, device: str | None) -> Foreign:
        """Replace ``distributed.functional.collective_comm``."""
        assert isinstance(group, self.group.Group), f"group is {group!r}, should be a Group"
        name = next(name for name in _COLLECTIVES if getattr(type(mode), name) == mode)
        if name in _GRADIENTS:
            return self.node(name, group, device)(inp)
        return self.carry(inp, name, group, device)

    def carry(self, inp: Foreign, name: str, group: Foreign, device: str | None) -> Foreign:
        """Return this rank's result of the collective of this name; a zero if the rank has no result."""
        array = self.read(inp, name)
        result = _COLLECTIVES[name](self.communicator(group), array)
        return self.tensor(np.zeros(1, array.dtype) if result is None else result, device=device or str(inp.device))

    def read(self, inp: Foreign, what: str) -> Foreign:
        """Return a tensor's values as a NumPy array.

        Raises:
            NotImplementedError: (a CollshimError too) the tensor has no values, because a symbolic trace is recorded.
        """
        try:
            return np.array(inp.numpy())
        except Exception as error:
            if not self.is_tracing():
                raise
            raise also(CollshimError, NotImplementedError)(
                f"{what}: collshim carries no collectives in a symbolic trace: use trace(symbolic=False)"
            ) from error

    def apply(self, op: Foreign, *inputs: Foreign) -> Foreign:
        """Replace ``apply`` in ``distributed.functional``: carry messages, and leave other operations unchanged."""
        name = type(op).__name__
        if name == "RemoteSend":
            self.communicator(self.group.WORLD).send(self.read(inputs[0], name), op.rank_to, discovers=True).free()
            return (self.tensor(np.zeros(1, np.float32)),)
        if name == "RemoteRecv":
            dtype = np.dtype(op.dtype)
            self.read(inputs[0], name)
            like = np.empty(tuple(op.shape), dtype)
            found = self.communicator(self.group.WORLD).recv(op.rank_from, like=like, discovers=True).wait()
            return (self.tensor(found.reshape(found.shape or (1,)), device=str(op.cn) if op.cn else None),)
        return self.own_apply(op, *inputs)


def _differentiable(carrier: _Carrier) -> Foreign:
    """Return MegEngine's ``Function`` for collectives whose result every rank holds."""
    base: Any = importlib.import_module("megengine.core.autodiff.grad").Function

    class _Carried(base):  # type: ignore[misc]
        """One call."""

        def __init__(self, name: str, group: Foreign, device: str | None) -> None:
            super().__init__()
            self.name, self.group, self.out_device = name, group, device

        def forward(self, inp: Foreign) -> Foreign:
            self.in_device = str(inp.device)
            out = carrier.carry(inp, self.name, self.group, self.out_device)
            self.extreme = inp == out if self.name in ("ALL_REDUCE_MAX", "ALL_REDUCE_MIN") else None
            return out

        def backward(self, grad: Foreign) -> Foreign:
            name = _GRADIENTS[self.name]
            gradient = getattr(carrier.functional, name)(grad, self.group, self.in_device)
            return gradient if self.extreme is None else gradient * self.extreme.astype(gradient.dtype)

    return _Carried


_GRADIENTS = {
    "ALL_REDUCE_SUM": "all_reduce_sum",
    "ALL_REDUCE_MAX": "all_reduce_sum",
    "ALL_REDUCE_MIN": "all_reduce_sum",
    "ALL_GATHER": "reduce_scatter_sum",
    "REDUCE_SCATTER_SUM": "all_gather",
    "ALL_TO_ALL": "all_to_all",
}
"""The gradients of those collectives whose gradient is not defined in MegEngine's own Python code."""


def _parts(comm: Communicator, array: Foreign) -> Foreign:
    return array.reshape(comm.size, array.shape[0] // comm.size, *array.shape[1:])


def _join(parts: Foreign) -> Foreign:
    if parts is None:
        return None
    return parts.reshape(parts.shape[0] * parts.shape[1], *parts.shape[2:]) if parts.ndim > 1 else parts


def _scatter(comm: Communicator, array: Foreign) -> Foreign:
    parts = _parts(comm, array)
    return comm.scatter(parts if comm.rank == 0 else None, 0, like=parts[0]).wait()


_COLLECTIVES: dict[str, Callable[[Communicator, Any], Any]] = {
    "ALL_REDUCE_SUM": lambda comm, array: comm.all_reduce(array).wait(),
    "ALL_REDUCE_MAX": lambda comm, array: comm.all_reduce(array, "max").wait(),
    "ALL_REDUCE_MIN": lambda comm, array: comm.all_reduce(array, "min").wait(),
    "REDUCE_SUM": lambda comm, array: comm.reduce(array).wait(),
    "BROADCAST": lambda comm, array: comm.broadcast(array).wait(),
    "ALL_GATHER": lambda comm, array: _join(comm.all_gather(array).wait()),
    "GATHER": lambda comm, array: _join(comm.gather(array).wait()),
    "REDUCE_SCATTER_SUM": lambda comm, array: comm.reduce_scatter(_parts(comm, array)).wait(),
    "SCATTER": _scatter,
    "ALL_TO_ALL": lambda comm, array: _join(comm.all_to_all(_parts(comm, array)).wait()),
}
