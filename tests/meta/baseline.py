"""A baseline adapter of a few functions, straight on the engine, for the suite's own tests to break one by one."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

from collshim import Communicator, current
from collshim.arrays import as_torch, like
from collshim.megengine.autodiff import GradManager

Functions = dict[str, Callable[..., Any]]


def communicator(group: Communicator | str | None = None) -> Communicator:
    """This rank's end of ``group``, which may be a name, or of the world."""
    found: Communicator = current().state[group] if isinstance(group, str) else group or current().communicator
    return found


def kind_of(array: Any, tensor: Any) -> Any:
    """``tensor`` as the kind of ``array``."""
    kind = like(array)
    return tensor if kind is None else kind(tensor)


def gather_list(tensor_list: list[Any], tensor: Any, group: Any = None, async_op: bool = False) -> Any:
    work = communicator(group).all_gather(tensor, out=tensor_list)
    return SimpleNamespace(wait=lambda: bool(work.wait()) or True) if async_op else work.wait() and None


def reduce_in_place(tensor: Any, op: str = "sum", group: Any = None) -> None:
    if op == "prod" and as_torch(tensor).is_complex():
        raise ValueError("all_reduce does not support PRODUCT on complex tensors")
    communicator(group).all_reduce(tensor, op, out=tensor).wait()


def exchange_lists(output_list: list[Any], input_list: list[Any], group: Any = None) -> None:
    communicator(group).all_to_all(input_list, out=output_list).wait()


def replace_list(tensor_list: list[Any], tensor: Any) -> None:
    tensor_list[:] = communicator().all_gather_ragged(tensor).wait()


def gather_joined(tensor: Any, group: Any = None) -> tuple[Any, None]:
    comm = communicator(group)
    joined = comm.all_gather(tensor).wait()
    return joined.reshape((comm.size * tensor.shape[0], *tensor.shape[1:])), None


def reduce_new(tensor: Any, op: str = "sum", group: Any = None) -> tuple[Any, None]:
    if op == "avg":
        raise TypeError("For all_reduce, the input op value must be one of sum, prod, min, max")
    return communicator(group).all_reduce(tensor, op).wait(), None


def gather_along(inp: Any, group: Any = None, axis: int = 0) -> Any:
    if axis >= max(len(inp.shape), 1):
        raise IndexError("list index out of range")
    joined = as_torch(communicator(group).all_gather(inp).wait())
    return kind_of(inp, joined if joined.dim() == 1 else joined.movedim(0, axis).flatten(axis, axis + 1))


def exchange_along(inp: Any, group: Any = None, split_axis: int = 0, concat_axis: int = 0) -> Any:
    comm, given = communicator(group), as_torch(inp)
    if given.shape[split_axis] % comm.size:
        raise AssertionError(f"current axis: {split_axis} can't devided by group size")
    parts = comm.all_to_all([part.contiguous() for part in given.chunk(comm.size, split_axis)]).wait()
    return kind_of(inp, torch.cat(list(parts), dim=concat_axis))


def reduce_to(tensor: Any, dst: int = 0, op: str = "sum", group: Any = None) -> None:
    comm = communicator(group)
    root = comm.ranks.index(dst)
    comm.reduce(tensor, root, op, out=tensor if comm.rank == root else None).wait()


def broadcast_from(tensor: Any, src: int = 0, group: Any = None) -> None:
    comm = communicator(group)
    if src not in comm.ranks:
        raise RuntimeError(f"invalid root rank: {src}")
    comm.broadcast(tensor, comm.ranks.index(src), out=tensor).wait()


def gather_to(tensor: Any, gather_list: Any = None, dst: int = 0, group: Any = None) -> None:
    comm = communicator(group)
    comm.gather(tensor, comm.ranks.index(dst), out=gather_list).wait()


def scatter_from(tensor: Any, scatter_list: Any = None, src: int = 0, group: Any = None) -> None:
    comm = communicator(group)
    comm.scatter(scatter_list, comm.ranks.index(src), out=tensor).wait()


def reduce_scatter(output: Any, input_list: list[Any], op: str = "sum", group: Any = None) -> None:
    communicator(group).reduce_scatter(input_list, op, out=output).wait()


def reduce_returned(tensor: Any, dst: int, op: str = "sum", group: Any = None) -> Any:
    comm = communicator(group)
    if dst not in comm.ranks:
        raise RuntimeError(f"Group doesn't contain the global rank {dst}")
    work = comm.reduce(tensor, comm.ranks.index(dst), op)
    found = work.wait()
    if found is not None:
        return found
    nothing = as_torch(tensor).detach().new_zeros(1)
    return kind_of(tensor, nothing if work.token is None else nothing + work.token)


def send_to(tensor: Any, dst: int, group: Any = None) -> None:
    comm = communicator(group)
    comm.send(tensor, comm.ranks.index(dst)).wait()


def recv_from(tensor: Any, src: int, group: Any = None) -> int:
    comm = communicator(group)
    comm.recv(comm.ranks.index(src), out=tensor).wait()
    return src


def wait_for_all(group: Any = None) -> None:
    communicator(group).barrier().wait()


def gather_objects(object_list: list[Any], obj: Any, group: Any = None) -> None:
    object_list[:] = communicator(group).all_gather_object(obj).wait()


def scatter_objects(output: list[Any], given: list[Any] | None = None, src: int = 0, group: Any = None) -> None:
    comm = communicator(group)
    output[0] = comm.scatter_object(given, comm.ranks.index(src)).wait()


def reduce_with_gradient(tensor: Any, op: str = "sum", group: Any = None) -> Any:
    return communicator(group).all_reduce(tensor, op).wait()


def subgroup(ranks: list[int], sort_ranks: bool = False) -> Communicator | None:
    return current().communicator.subgroup(ranks, kept=True)


def create_group(name: str, ranks: list[int]) -> None:
    current().state[name] = subgroup(ranks)


BASELINE: Functions = {
    "torch.distributed.is_initialized": lambda: True,
    "torch.distributed.new_group": subgroup,
    "torch.distributed.ReduceOp": SimpleNamespace(
        SUM="sum", PRODUCT="prod", MIN="min", MAX="max", AVG="avg", BAND="band", BOR="bor", BXOR="bxor"
    ),  # type: ignore[dict-item]
    "torch.distributed.all_gather": gather_list,
    "torch.distributed.all_reduce": reduce_in_place,
    "torch.distributed.all_to_all": exchange_lists,
    "torch.distributed.reduce": reduce_to,
    "torch.distributed.broadcast": broadcast_from,
    "torch.distributed.gather": gather_to,
    "torch.distributed.scatter": scatter_from,
    "torch.distributed.reduce_scatter": reduce_scatter,
    "torch.distributed.send": send_to,
    "torch.distributed.recv": recv_from,
    "torch.distributed.barrier": wait_for_all,
    "torch.distributed.all_gather_object": gather_objects,
    "torch.distributed.scatter_object_list": scatter_objects,
    "torch.distributed.nn.functional.all_reduce": reduce_with_gradient,
    "oneflow.comm.all_gather": replace_list,
    "mindspore.communication.init": lambda: None,
    "mindspore.communication.create_group": create_group,
    "mindspore.communication.comm_func.all_gather_into_tensor": gather_joined,
    "mindspore.communication.comm_func.all_reduce": reduce_new,
    "mindspore.communication.comm_func.reduce": reduce_returned,
    "megengine.autodiff.GradManager": GradManager,
    "megengine.distributed.is_distributed": lambda: True,
    "megengine.distributed.new_group": subgroup,
    "megengine.functional.distributed.all_gather": gather_along,
    "megengine.functional.distributed.all_to_all": exchange_along,
}
