"""save, load and ``_broadcast_py_object``. Arguments and results of OneFlow 0.9.0; the files are torch's.

OneFlow writes a directory with a file for each tensor. Here ``path`` becomes a file in torch's format, which OneFlow's
``load`` also reads; a directory that OneFlow wrote is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import torch

from collshim import world
from collshim.errors import ArgumentValueError, also
from collshim.oneflow.comm.arguments import world_communicator
from collshim.oneflow.device_names import Device, own_device
from collshim.oneflow.framework.tensor import adopt, plain
from collshim.oneflow.global_tensors import placement, sbp
from collshim.oneflow.utils.global_view import to_global
from collshim.settings import get as current_options


def _broadcast_py_object(obj: Any, src: int = 0) -> Any:
    """Return a copy of rank ``src``'s object on every rank; it is sent pickled.

    Raises:
        IndexError: ``src`` is not a rank.
    """
    return world_communicator().broadcast_object(obj, src).wait()


def save(obj: Any, path: str | PathLike[str], global_dst_rank: int | None = None) -> None:
    """Write ``obj`` to ``path``; with ``global_dst_rank`` only that rank writes.

    Raises:
        OSError: the path cannot be written.
    """
    if global_dst_rank is None or world.current().rank == global_dst_rank:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        torch.save(_plain(obj), path)


def load(
    path: str | PathLike[str],
    global_src_rank: int | None = None,
    map_location: Device | placement = None,
    *,
    support_pytorch_format: bool = True,
) -> Any:
    """Return the object that ``save`` wrote; with ``global_src_rank`` that rank reads it for all ranks.

    Tensors are on the CPU, or on ``map_location``; with a placement they are global, and the same on all its ranks.
    A file, as in OneFlow, may hold anything that pickle restores, and may run any code that its writer chose; with
    ``collshim.options(objects="safe")`` it may hold only tensors, numbers, text and containers.

    Raises:
        FileNotFoundError: there is no such file.
        NotImplementedError: ``path`` is a directory, as OneFlow writes it.
    """
    own = world.current()
    if isinstance(map_location, placement):
        found = load(path, global_src_rank, support_pytorch_format=support_pytorch_format)
        equal = [sbp("broadcast")] * map_location.ranks.ndim
        return to_global(found, map_location, equal, warn_on_non_tensor_leaf=False)
    if Path(path).is_dir():
        raise also(ArgumentValueError, NotImplementedError)(
            f"load: path {str(path)!r} is a directory, OneFlow's own format, should be a file that flow.save wrote "
            f"(rank {own.rank} of {own.size})"
        )
    place = own_device(map_location) or torch.device("cpu")
    safe = current_options().objects != "any"
    if global_src_rank is None:
        return adopt(torch.load(path, map_location=place, weights_only=safe))
    read = torch.load(path, map_location="cpu", weights_only=safe) if own.rank == global_src_rank else None
    return _move(_broadcast_py_object(read, global_src_rank), place)


def _plain(value: Any) -> Any:
    """Convert tensors to torch's class, which ``torch.load`` restores without running code from the file."""
    if isinstance(value, Mapping):
        return type(value)((key, _plain(entry)) for key, entry in value.items())  # type: ignore[call-arg]
    if isinstance(value, list | tuple):
        return type(value)(map(_plain, value))
    return plain(value.detach()) if isinstance(value, torch.Tensor) else value


def _move(value: Any, place: torch.device) -> Any:
    if isinstance(value, dict):
        return {key: _move(entry, place) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_move(entry, place) for entry in value)
    return adopt(value.to(place)) if isinstance(value, torch.Tensor) else value
