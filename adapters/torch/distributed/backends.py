"""Names of backends: accepted as torch accepts them. What carries the data is chosen by the tensors' device."""

from __future__ import annotations

from typing import Any

import torch
from torch.distributed import Backend, is_nccl_available
from torch.distributed.distributed_c10d import BackendConfig

from collshim.torch.distributed.arguments import refuse

UNDEFINED = "undefined"
_CARRIED = ("gloo", "nccl", "collshim", UNDEFINED)
_KNOWN = (*_CARRIED, "mpi", "ucc", "xccl", "fake")


def backend_named(backend: Any) -> str:
    """The backend's name in small letters, as ``get_backend`` tells it; also the form ``cpu:gloo,cuda:nccl``.

    Raises:
        ValueError: not a string.
        AssertionError: no such backend.
        RuntimeError: one that is not there.
    """
    if not isinstance(backend, str):
        refuse(ValueError, f"Backend constructor parameter must be string-ish, got {backend!r}")
    for part in backend.lower().split(","):
        _require_there(part.rpartition(":")[2])
    return backend.lower()


def device_backends(backend: str) -> dict[str, str]:
    """Each device's backend, as torch reads the name of one."""
    name = backend.lower()
    config: Any = BackendConfig(Backend(name))  # pyright: ignore[reportArgumentType]
    return {device: str(there) for device, there in config.get_device_backend_map().items()}


def default_backend(device_id: Any) -> str:
    """The backend where none is named: the device's, or not defined."""
    if device_id is None:
        return UNDEFINED
    return "nccl" if torch.device(device_id).type == "cuda" else "gloo"


def _require_there(name: str) -> None:
    if name not in _KNOWN:
        refuse(AssertionError, f"Unknown backend type {name}, should be gloo or nccl")
    if name not in _CARRIED:
        refuse(RuntimeError, f"backend is {name}, should be gloo or nccl: collshim carries data over these two")
    if name == "nccl" and not is_nccl_available():
        refuse(RuntimeError, "Distributed package doesn't have NCCL built in: backend should be gloo")
