"""Three functions of ``torch.distributed`` over a key-value store: an example of a module that the suite can test."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from urllib.parse import urlsplit

import torch
from torch.distributed import ReduceOp, TCPStore

_world: dict[str, Any] = {}
_groups = count(1)
_FOLDS: dict[Any, Callable[[Any, Any], Any]] = {
    ReduceOp.SUM: torch.add,
    ReduceOp.AVG: torch.add,
    ReduceOp.PRODUCT: torch.mul,
    ReduceOp.MIN: torch.minimum,
    ReduceOp.MAX: torch.maximum,
    ReduceOp.BAND: torch.bitwise_and,
    ReduceOp.BOR: torch.bitwise_or,
    ReduceOp.BXOR: torch.bitwise_xor,
}


@dataclass
class Group:
    """Some ranks, in order, and the number of calls that they have made together."""

    name: str
    ranks: list[int]
    calls: Any = field(default_factory=count)


class Done:
    """The work of a call that is complete when it returns."""

    def wait(self) -> bool:
        """Return True at once: the call is complete."""
        return True


def is_initialized() -> bool:
    """Return whether this rank is in a world."""
    return bool(_world)


def init_process_group(backend: str, init_method: str, rank: int, world_size: int) -> None:
    """Every rank is in one world; the first serves the store."""
    address = urlsplit(init_method)
    store = TCPStore(str(address.hostname), int(address.port or 0), world_size, is_master=rank == 0)
    _world.update(store=store, rank=rank, everybody=Group("world", list(range(world_size))))


def new_group(ranks: list[int], sort_ranks: bool = True) -> Group:
    """Return a group of the ranks, sorted unless ``sort_ranks`` is false."""
    return Group(f"group {next(_groups)}", sorted(ranks) if sort_ranks else ranks)


def all_gather(tensor_list: Any, tensor: Any, group: Group | None = None, async_op: bool = False) -> Done | None:
    """Every rank's tensor_list holds all ranks' tensors, in group order."""
    if not isinstance(tensor_list, list) or not all(map(_is_array, [*tensor_list, tensor])):
        raise TypeError("Invalid function argument. Expected a list of tensors and a tensor")
    parts = _exchanged(tensor, group)
    if len(parts) != len(tensor_list):
        raise RuntimeError(f"the list has {len(tensor_list)} tensors, should have {len(parts)}")
    for held, part in zip(tensor_list, parts, strict=True):
        _fill(held, part)
    return Done() if async_op else None


def all_reduce(tensor: Any, op: Any = ReduceOp.SUM, group: Group | None = None, async_op: bool = False) -> Done | None:
    """Every rank's tensor holds the reduction of all ranks' tensors."""
    if not _is_array(tensor):
        raise TypeError(f"Invalid function argument. Expected a tensor, got {type(tensor)}")
    given = torch.as_tensor(tensor)
    if given.is_complex() and op not in (ReduceOp.SUM, ReduceOp.AVG):
        raise ValueError(f"all_reduce does not support {op} on complex tensors")
    parts = _exchanged(given, group)
    total = functools.reduce(_FOLDS[op], parts).to(given.dtype)
    _fill(tensor, _divided(total, len(parts)) if op == ReduceOp.AVG else total)
    return Done() if async_op else None


def barrier(group: Group | None = None, async_op: bool = False) -> Done | None:
    """No rank leaves before every rank has come."""
    _exchanged(None, group)
    return Done() if async_op else None


def _divided(total: torch.Tensor, size: int) -> torch.Tensor:
    """Divide in the dtype of the total: torch divides integers as float32."""
    exact = not (total.is_floating_point() or total.is_complex())
    return torch.div(total, size, rounding_mode="trunc" if exact else None)


def _exchanged(value: Any, group: Group | None) -> list[Any]:
    """Return the values of all ranks of the group, in group order."""
    within: Group = group or _world["everybody"]
    key = f"{within.name}, call {next(within.calls)}, rank "
    _world["store"].set(key + str(_world["rank"]), pickle.dumps(value))
    return [pickle.loads(_world["store"].get(key + str(rank))) for rank in within.ranks]


def _is_array(value: object) -> bool:
    return isinstance(value, torch.Tensor) or hasattr(value, "__array_interface__")


def _fill(held: Any, value: Any) -> None:
    torch.as_tensor(held).copy_(torch.as_tensor(value))
