"""``mindspore.ops.communication``: the functions of ``mint.distributed`` and more; some can return their results.

After ``set_comm_ops_inplace(False)`` on a rank, ten functions leave their arguments unchanged on it, and return the
results of ``comm_func``: ``(output, handle)``, or the received tensor. The others raise ValueError (source: MindSpore
2.10.0).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from collshim import world
from collshim.adapting.refusing import refuse
from collshim.arrays import Array
from collshim.mindspore.communication import comm_func
from collshim.mindspore.communication._store import TCPStore
from collshim.mindspore.communication.comm_func.collectives import reduce_to_all
from collshim.mindspore.communication.groups import HCCL_WORLD_COMM_GROUP
from collshim.mindspore.mint.distributed import _collectives, distributed
from collshim.mindspore.mint.distributed.distributed import P2POp as P2POp
from collshim.mindspore.mint.distributed.distributed import destroy_process_group as destroy_process_group
from collshim.mindspore.mint.distributed.distributed import get_backend as get_backend
from collshim.mindspore.mint.distributed.distributed import get_global_rank as get_global_rank
from collshim.mindspore.mint.distributed.distributed import get_group_rank as get_group_rank
from collshim.mindspore.mint.distributed.distributed import get_process_group_ranks as get_process_group_ranks
from collshim.mindspore.mint.distributed.distributed import get_rank as get_rank
from collshim.mindspore.mint.distributed.distributed import get_world_size as get_world_size
from collshim.mindspore.mint.distributed.distributed import init_process_group as init_process_group
from collshim.mindspore.mint.distributed.distributed import is_available as is_available
from collshim.mindspore.mint.distributed.distributed import is_initialized as is_initialized
from collshim.mindspore.mint.distributed.distributed import new_group as new_group

F = TypeVar("F", bound=Callable[..., Any])
_WORLD = HCCL_WORLD_COMM_GROUP


_BEFORE_INIT = set[str]()
"""The functions that return their results, chosen before this process had a world."""

_SWITCHABLE: list[str] = []


def _functional() -> list[set[str]]:
    """Return the functions that return their results on this rank: those chosen in its world or before it existed."""
    current_world = world.peek()
    if current_world is None:
        return [_BEFORE_INIT]
    return [current_world.state.setdefault("mindspore.ops.communication", set[str]()), _BEFORE_INIT]


def _make_switchable(function: F, functional: Callable[..., Any] | None = None) -> F:
    """Decorate ``function`` to call ``functional`` instead if this rank chose functions that return results."""
    name = function.__name__
    _SWITCHABLE.append(name)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not any(name in chosen for chosen in _functional()):
            return function(*args, **kwargs)
        if functional is None:
            refuse(ValueError, "Non-inplace mode is currently not supported.")
        return functional(*args, **kwargs)

    return cast(F, call)


def set_comm_ops_inplace(is_enable: bool, func_list: list[str] | None = None) -> None:
    """Choose whether functions, all or those in the list, write in place or return their results on this rank.

    Raises:
        TypeError: ``is_enable`` is not a bool, or ``func_list`` not a list.
        ValueError: there is no function of a name in the list.
    """
    if not isinstance(is_enable, bool):
        text = "For 'set_comm_ops_inplace', the argument 'is_enable' must be type of bool, but got 'is_enable' type : "
        refuse(TypeError, f"{text}{type(is_enable)}.")
    names = _SWITCHABLE if func_list is None else func_list
    if not isinstance(names, list | tuple):
        refuse(TypeError, f"Expected list or tuple, but got {type(func_list)}.")
    for name in names:
        if name not in _SWITCHABLE:
            refuse(ValueError, f"The function name in `func_list` must be correct, but got {name}.")
    if not is_enable:
        _functional()[0].update(names)
        return
    for chosen in _functional():
        chosen.difference_update(names)


def _all_reduce(tensor: Array, op: str = "sum", group: str | None = None, async_op: bool = False) -> Any:
    if op == "avg":  # comm_func.all_reduce refuses the mean, as MindSpore's does
        return reduce_to_all(tensor, op, group or _WORLD, async_op)
    return comm_func.all_reduce(tensor, op, group or _WORLD, async_op)


def _all_gather_into_tensor(
    output_tensor: Array, input_tensor: Array, group: str | None = None, async_op: bool = False
) -> Any:
    return comm_func.all_gather_into_tensor(input_tensor, group or _WORLD, async_op)


def _reduce_scatter_tensor(
    output: Array, input: Array, op: str = "sum", group: str | None = None, async_op: bool = False
) -> Any:
    return comm_func.reduce_scatter_tensor(input, op, group or _WORLD, async_op)


def _all_to_all(
    output_tensor_list: Sequence[Any],
    input_tensor_list: Sequence[Array],
    group: str | None = None,
    async_op: bool = False,
) -> Any:
    return comm_func.all_to_all_with_output_shape(output_tensor_list, input_tensor_list, group, async_op)


def _all_to_all_single(
    output: Any,
    input: Array,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: str | None = None,
    async_op: bool = False,
) -> Any:
    return comm_func.all_to_all_single_with_output_shape(
        output, input, output_split_sizes, input_split_sizes, group, async_op
    )


def _barrier(group: str | None = None, async_op: bool = False, device_ids: Any = None) -> Any:
    return distributed.barrier(group, async_op, device_ids)


def _send(tensor: Array, dst: int = 0, group: str | None = None, tag: int = 0) -> None:
    distributed.send(tensor, dst, group, tag)


def _isend(tensor: Array, dst: int = 0, group: str | None = None, tag: int = 0) -> Any:
    return distributed.isend(tensor, dst, group, tag)


def _recv(tensor: Array, src: int = 0, group: str | None = None, tag: int = 0) -> Array:
    return comm_func.recv(tensor, src, group or _WORLD, tag)


def _irecv(tensor: Array, src: int = 0, group: str | None = None, tag: int = 0) -> Any:
    return comm_func.irecv(tensor, src, group or _WORLD, tag)


all_reduce = _make_switchable(distributed.all_reduce, _all_reduce)
all_gather_into_tensor = _make_switchable(distributed.all_gather_into_tensor, _all_gather_into_tensor)
reduce_scatter_tensor = _make_switchable(distributed.reduce_scatter_tensor, _reduce_scatter_tensor)
all_to_all = _make_switchable(distributed.all_to_all, _all_to_all)
all_to_all_single = _make_switchable(distributed.all_to_all_single, _all_to_all_single)
barrier = _make_switchable(distributed.barrier, _barrier)
send, isend = _make_switchable(distributed.send, _send), _make_switchable(distributed.isend, _isend)
recv, irecv = _make_switchable(distributed.recv, _recv), _make_switchable(distributed.irecv, _irecv)
all_gather = _make_switchable(distributed.all_gather)
all_gather_into_tensor_uneven = _make_switchable(distributed.all_gather_into_tensor_uneven)
all_gather_object = _make_switchable(distributed.all_gather_object)
all_to_all_v_c = _make_switchable(_collectives.all_to_all_v_c)
batch_isend_irecv = _make_switchable(distributed.batch_isend_irecv)
broadcast = _make_switchable(distributed.broadcast)
broadcast_object_list = _make_switchable(distributed.broadcast_object_list)
gather = _make_switchable(distributed.gather)
gather_into_tensor = _make_switchable(_collectives.gather_into_tensor)
gather_object = _make_switchable(distributed.gather_object)
recv_object_list = _make_switchable(distributed.recv_object_list)
reduce = _make_switchable(distributed.reduce)
reduce_scatter = _make_switchable(distributed.reduce_scatter)
reduce_scatter_tensor_uneven = _make_switchable(distributed.reduce_scatter_tensor_uneven)
scatter = _make_switchable(distributed.scatter)
scatter_object_list = _make_switchable(distributed.scatter_object_list)
scatter_tensor = _make_switchable(_collectives.scatter_tensor)
send_object_list = _make_switchable(distributed.send_object_list)

__all__ = ["TCPStore", "all_to_all_v_c", "gather_into_tensor", "scatter_tensor", "set_comm_ops_inplace"]
__all__ += distributed.__all__
