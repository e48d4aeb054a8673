"""save, load and ``_broadcast_py_object``. Arguments and results of OneFlow 0.9.0; the files are torch's.

OneFlow writes a directory with a file for each tensor. Here ``path`` becomes a file in torch's format, which OneFlow's
``load`` also reads; a directory that OneFlow wrote is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import torch

from collshim import world
from collshim.errors import ArgumentValueError, also
from collshim.oneflow.comm.arguments import world_communicator
from collshim.oneflow.device_names import Device, own_device
from collshim.oneflow.framework.global_tensor import on_ranks
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
        AssertionError: ``obj`` has a global tensor, and ``global_dst_rank`` is None; or a local one, and it is not; or
            ``global_dst_rank`` is not an int.
        RuntimeError: ``global_dst_rank`` is not a rank.
    """
    if global_dst_rank is not None:
        _require_rank(global_dst_rank)
    _require_kind(obj, is_global=global_dst_rank is not None)
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

    Tensors are on the CPU, or on ``map_location``. With ``global_src_rank`` they are global tensors on that rank alone;
    with a placement they are global, and the same on all its ranks.
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
    moved = _move(_broadcast_py_object(read, global_src_rank), place)
    alone = placement(place.type, [global_src_rank])
    return _each_tensor(moved, lambda tensor: on_ranks(tensor, alone))


def _plain(value: Any) -> Any:
    """Convert tensors to torch's class, which ``torch.load`` restores without running code from the file."""
    return _each_tensor(value, lambda tensor: plain(tensor.detach()))


def _move(value: Any, place: torch.device) -> Any:
    return _each_tensor(value, lambda tensor: adopt(tensor.to(place)))


def _each_tensor(value: Any, change: Callable[[torch.Tensor], Any]) -> Any:
    """Return a copy of nested containers with their tensors changed."""
    if isinstance(value, Mapping):
        return type(value)((key, _each_tensor(entry, change)) for key, entry in value.items())  # type: ignore[call-arg]
    if isinstance(value, list | tuple):
        return type(value)([_each_tensor(entry, change) for entry in value])
    return change(value) if isinstance(value, torch.Tensor) else value


def _require_rank(rank: int) -> None:
    own = world.current()
    kind = RuntimeError if isinstance(rank, int) else AssertionError
    if not (isinstance(rank, int) and 0 <= rank < own.size):
        text = f"save: global_dst_rank is {rank!r}, should be an int from 0 to {own.size - 1}"
        raise also(ArgumentValueError, kind)(text + world.place())


def _require_kind(obj: Any, *, is_global: bool) -> None:
    """Refuse an object with tensors of the other kind."""

    def check(tensor: torch.Tensor) -> None:
        if getattr(tensor, "is_global", False) != is_global:
            advice = "is local: leave global_dst_rank out" if is_global else "is global: pass global_dst_rank"
            raise also(ArgumentValueError, AssertionError)(f"save: a tensor {advice}{world.place()}")

    _each_tensor(obj, check)
