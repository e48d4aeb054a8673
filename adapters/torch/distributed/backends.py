"""Names of backends, which are accepted as in torch. The device of the tensors decides how the data is sent."""

from __future__ import annotations

from typing import Any

import torch
from torch.distributed import Backend, is_nccl_available
from torch.distributed.distributed_c10d import BackendConfig

from collshim.adapting import devices
from collshim.adapting.refusing import refuse
from collshim.torch.distributed.arguments import warn

UNDEFINED = "undefined"
_SUPPORTED = ("gloo", "nccl", "collshim", UNDEFINED)
_NEEDS_A_BUILD = ("mpi", "xccl")


def normalize_backend(backend: Any) -> str:
    """Return the backend's name in lower case, as ``get_backend`` does; also a name such as ``cpu:gloo,cuda:nccl``.

    Raises:
        ValueError: the name is not a string; it has a colon, but does not consist of pairs of a device and a backend;
            it names a device twice.
        AssertionError: there is no such backend.
        RuntimeError: the backend is not available.
    """
    if not isinstance(backend, str):
        refuse(ValueError, f"Backend constructor parameter must be string-ish, got {backend!r}")
    name = backend.lower()
    if ":" not in name and name not in Backend.backend_list:
        text = f"Device capability of {name} unknown, assuming `cpu` and `cuda`. You can specify it in "
        warn(f"{text}`device:backend` format in `init_process_group` call.")
    for part in _per_device(name).values() if ":" in name else [name]:
        _require_available(part)
    return name


def device_backends(backend: str) -> dict[str, str]:
    """Return the backend of each device, which torch derives from the backend's name."""
    name = backend.lower()
    config: Any = BackendConfig(Backend(name))  # pyright: ignore[reportArgumentType]
    return {device: str(carrier) for device, carrier in config.get_device_backend_map().items()}


def default_backend(device_id: Any) -> str:
    """Return the backend to use if none is named: the one for ``device_id``, or "undefined" without ``device_id``."""
    if device_id is None:
        return UNDEFINED
    return "nccl" if devices.is_pretended() or torch.device(device_id).type == "cuda" else "gloo"


def _per_device(name: str) -> dict[str, str]:
    pairs = [part.split(":") for part in name.split(",")]
    if any(len(pair) != 2 for pair in pairs):
        refuse(ValueError, f"Invalid device:backend pairing: {name}, should be like cpu:gloo,cuda:nccl")
    backends = {pair[0]: pair[1] for pair in pairs}
    if len(backends) != len(pairs):
        refuse(ValueError, f"Duplicate device type in backend string: {name}, should name each once")
    return backends


def _require_available(name: str) -> None:
    if name not in (*_SUPPORTED, *_NEEDS_A_BUILD):
        refuse(AssertionError, f"Unknown backend type {name}, should be gloo or nccl")
    if name in _NEEDS_A_BUILD:
        refuse(RuntimeError, f"backend is {name}, should be gloo or nccl: collshim carries data over these two")
    if name == "nccl" and not (is_nccl_available() or devices.is_pretended()):
        refuse(RuntimeError, "Distributed package doesn't have NCCL built in: backend should be gloo")
