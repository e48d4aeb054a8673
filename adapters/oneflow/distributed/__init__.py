"""``oneflow.distributed``: the collectives under torch's names.

OneFlow 0.9.0 has only the launcher here; the rest is from later releases. all_reduce, reduce and reduce_scatter require
``op``, which must be ``ReduceOp.SUM``; ``group``, ``async_op``, ``tag`` and ``device_ids`` must have their default
values. Results are written as in ``flow.comm``. ``recv(tensor, src)`` writes into ``tensor``, as its signature
suggests; OneFlow's own raises TypeError.
"""

from __future__ import annotations

from typing import Any

from collshim.adapting.absent import missing_attribute
from collshim.arrays import Array
from collshim.oneflow import comm
from collshim.oneflow.comm.arguments import argument_error
from collshim.oneflow.env import get_local_rank as get_local_rank
from collshim.oneflow.env import get_rank as get_rank
from collshim.oneflow.env import get_world_size as get_world_size


class ReduceOp:
    """The reductions: only the sum."""

    SUM = "sum"


def is_available() -> bool:
    """Return True."""
    return True


def is_initialized() -> bool:
    """Return True: the first use joins the world."""
    return True


def _require_defaults(function: str, **given: Any) -> None:
    for name, value in given.items():
        if name == "op" and value != ReduceOp.SUM:
            raise argument_error(AssertionError, function, "op", repr(value), "ReduceOp.SUM: only sum is supported")
        if name != "op" and value not in (None, False, 0):
            raise argument_error(
                AssertionError, function, name, repr(value), f"its default: {name} is not supported yet"
            )


def send(tensor: Array, dst: int, group: Any = None, tag: int = 0) -> None:
    """Call ``comm.send``."""
    _require_defaults("send", group=group, tag=tag)
    comm.send(tensor, dst)


def recv(tensor: Array, src: int, group: Any = None, tag: int = 0) -> None:
    """Receive the next message from rank ``src`` to this rank in ``tensor``."""
    _require_defaults("recv", group=group, tag=tag)
    comm.recv(src, out=tensor)


def broadcast(tensor: Array, src: int, group: Any = None, async_op: bool = False) -> None:
    """Call ``comm.broadcast``."""
    _require_defaults("broadcast", group=group, async_op=async_op)
    comm.broadcast(tensor, src)


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> None:
    """Call ``comm.barrier``."""
    _require_defaults("barrier", group=group, async_op=async_op, device_ids=device_ids)
    comm.barrier()


def all_reduce(tensor: Array, op: Any, group: Any = None, async_op: bool = False) -> None:
    """Call ``comm.all_reduce``."""
    _require_defaults("all_reduce", op=op, group=group, async_op=async_op)
    comm.all_reduce(tensor)


def all_gather(tensor_list: list[Array], tensor: Array, group: Any = None, async_op: bool = False) -> None:
    """Call ``comm.all_gather``."""
    _require_defaults("all_gather", group=group, async_op=async_op)
    comm.all_gather(tensor_list, tensor)


def reduce(tensor: Array, dst: int, op: Any, group: Any = None, async_op: bool = False) -> None:
    """Call ``comm.reduce``."""
    _require_defaults("reduce", op=op, group=group, async_op=async_op)
    comm.reduce(tensor, dst)


def all_to_all(
    output_tensor_list: list[Array], input_tensor_list: list[Array], group: Any = None, async_op: bool = False
) -> None:
    """Call ``comm.all_to_all``."""
    _require_defaults("all_to_all", group=group, async_op=async_op)
    comm.all_to_all(output_tensor_list, input_tensor_list)


def reduce_scatter(output: Array, input_list: list[Array], op: Any, group: Any = None, async_op: bool = False) -> None:
    """Call ``comm.reduce_scatter``."""
    _require_defaults("reduce_scatter", op=op, group=group, async_op=async_op)
    comm.reduce_scatter(output, input_list)


def gather(
    tensor: Array, gather_list: list[Array] | None = None, dst: int = 0, group: Any = None, async_op: bool = False
) -> None:
    """Call ``comm.gather``."""
    _require_defaults("gather", group=group, async_op=async_op)
    comm.gather(tensor, gather_list, dst)


def __getattr__(name: str) -> Any:
    text = "OneFlow's distributed has no init and no groups: use the collectives of flow.comm"
    raise missing_attribute(__name__, name, text)
