"""A sound adapter of a few functions, straight on the engine, for the suite's own tests to break one by one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from collshim import Communicator, current
from collshim.arrays import as_torch, like

Functions = dict[str, Callable[..., Any]]


def here(group: Communicator | str | None = None) -> Communicator:
    """This rank's end of ``group``, which may be a name, or of the world."""
    found: Communicator = current().state[group] if isinstance(group, str) else group or current().communicator
    return found


def kind_of(array: Any, tensor: Any) -> Any:
    """``tensor`` as the kind of ``array``."""
    kind = like(array)
    return tensor if kind is None else kind(tensor)


def gather_list(tensor_list: list[Any], tensor: Any, group: Any = None, async_op: bool = False) -> Any:
    work = here(group).all_gather(tensor, out=tensor_list)
    return SimpleNamespace(wait=lambda: bool(work.wait()) or True) if async_op else work.wait() and None


def reduce_in_place(tensor: Any, op: str = "sum", group: Any = None) -> None:
    if op == "prod" and as_torch(tensor).is_complex():
        raise ValueError("all_reduce does not support PRODUCT on complex tensors")
    here(group).all_reduce(tensor, op, out=tensor).wait()


def exchange_lists(output_list: list[Any], input_list: list[Any], group: Any = None) -> None:
    here(group).all_to_all(input_list, out=output_list).wait()


def replace_list(tensor_list: list[Any], tensor: Any) -> None:
    tensor_list[:] = here().all_gather_ragged(tensor).wait()


def gather_joined(tensor: Any, group: Any = None) -> tuple[Any, None]:
    comm = here(group)
    joined = comm.all_gather(tensor).wait()
    return joined.reshape((comm.size * tensor.shape[0], *tensor.shape[1:])), None


def reduce_new(tensor: Any, op: str = "sum", group: Any = None) -> tuple[Any, None]:
    if op == "avg":
        raise TypeError("For all_reduce, the input op value must be one of sum, prod, min, max")
    return here(group).all_reduce(tensor, op).wait(), None


def gather_along(inp: Any, group: Any = None, axis: int = 0) -> Any:
    if axis >= max(len(inp.shape), 1):
        raise IndexError("list index out of range")
    joined = as_torch(here(group).all_gather(inp).wait())
    return kind_of(inp, joined if joined.dim() == 1 else joined.movedim(0, axis).flatten(axis, axis + 1))


def exchange_along(inp: Any, group: Any = None, split_axis: int = 0, concat_axis: int = 0) -> Any:
    comm, given = here(group), as_torch(inp)
    if given.shape[split_axis] % comm.size:
        raise AssertionError(f"current axis: {split_axis} can't devided by group size")
    parts = comm.all_to_all([part.contiguous() for part in given.chunk(comm.size, split_axis)]).wait()
    import torch

    return kind_of(inp, torch.cat(list(parts), dim=concat_axis))


def subgroup(ranks: list[int], sort_ranks: bool = False) -> Communicator | None:
    return current().communicator.subgroup(ranks)


def create_group(name: str, ranks: list[int]) -> None:
    current().state[name] = subgroup(ranks)


SOUND: Functions = {
    "torch.distributed.is_initialized": lambda: True,
    "torch.distributed.new_group": subgroup,
    "torch.distributed.ReduceOp": SimpleNamespace(SUM="sum", PRODUCT="prod", MIN="min", MAX="max", AVG="avg"),  # type: ignore[dict-item]
    "torch.distributed.all_gather": gather_list,
    "torch.distributed.all_reduce": reduce_in_place,
    "torch.distributed.all_to_all": exchange_lists,
    "oneflow.comm.all_gather": replace_list,
    "mindspore.communication.init": lambda: None,
    "mindspore.communication.create_group": create_group,
    "mindspore.communication.comm_func.all_gather_into_tensor": gather_joined,
    "mindspore.communication.comm_func.all_reduce": reduce_new,
    "megengine.distributed.is_distributed": lambda: True,
    "megengine.distributed.new_group": subgroup,
    "megengine.functional.distributed.all_gather": gather_along,
    "megengine.functional.distributed.all_to_all": exchange_along,
}


@pytest.fixture
def adapter(monkeypatch: pytest.MonkeyPatch) -> Callable[[Functions], str]:
    """Installs the sound adapter, with some functions exchanged, and returns the prefix of its imports."""

    def install(changes: Functions) -> str:
        for path, function in (SOUND | changes).items():
            _install(monkeypatch, f"trial.{path}", function)
        return "trial."

    return install


def _install(monkeypatch: pytest.MonkeyPatch, path: str, function: Any) -> None:
    *parents, name = path.split(".")
    for end in range(1, len(parents) + 1):
        dotted = ".".join(parents[:end])
        if dotted not in sys.modules:
            monkeypatch.setitem(sys.modules, dotted, ModuleType(dotted))
    setattr(sys.modules[".".join(parents)], name, function)
