"""How a call is posted: repeated, or validated, accepted by the engine, and watched by a profiler where one runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.autograd import profiler

import collshim.work
from collshim.calls.collective import ALL_TO_ALL, GATHER, SCATTER, Collective
from collshim.errors import ArgumentError, also
from collshim.torch.distributed.arguments import NAMES
from collshim.torch.distributed.membership import Group, ProcessGroup, membership, required
from collshim.torch.distributed.profiling import Event, begun
from collshim.torch.distributed.work import Work, complete

T = TypeVar("T")

Call = Callable[..., collshim.work.Work[Any]]
"""What posts on a communicator: called with it, and with a call's arguments behind it."""


def repeated(
    group: Group, collective: Collective, array: Any, out: Any, op: Any = None, ranks: tuple[Any, Any] | None = None
) -> collshim.work.Work[Any] | None:
    """Post a call like one that was validated before; None, and nothing posted, where more has to be looked at.

    Args:
        group: the function's own argument.
        collective: the engine's record of it.
        array, out: see ``Communicator``; None for what is no plain tensor, an empty list for no list.
        op: the engine's name of a reduce operation, or the splits of an all_to_all.
        ranks: of a rooted collective, the root as a global rank and as a rank in the group.
    """
    process_group, root = _quick(group), None
    if process_group is None or array is None or out is None:
        return None
    if ranks is not None:
        root = _root(process_group, *ranks)
        if root is None:
            return None
        if collective is GATHER or collective is SCATTER:
            parts = out if collective is GATHER else array
            if bool(parts) != (root == process_group.communicator.rank):
                return None  # given on another rank than torch wants it on
            array, out = (array, parts or None) if collective is GATHER else (parts or out, out)
    if collective is ALL_TO_ALL and type(array) is Tensor and array.shape[:1] == (process_group.communicator.size,):
        return None  # pieces of length 1: the engine would take them for parts without that dimension
    work: collshim.work.Work[Any] | None = process_group.communicator._repeat(collective, array, out, op, root)
    if work is not None:
        process_group.posted += 1
    return work


def _quick(group: Group) -> Any:
    """The group that is meant; None where it has to be looked up, or where calls are watched or held back."""
    state = membership()
    if state is None or profiler._is_profiler_enabled or torch.is_inference_mode_enabled():
        return None
    process_group = state.default if group is None else group
    if not isinstance(process_group, ProcessGroup) or process_group.held is not None:
        return None
    return process_group if process_group is state.default or process_group in state.groups else None


def _root(group: ProcessGroup, global_rank: Any, group_rank: Any) -> Any:
    """The rank in the group that one of the two says; None where that is not plain."""
    if global_rank is None:
        return group_rank
    if group_rank is not None or type(global_rank) is not int:
        return None
    if group.is_whole:
        return global_rank
    ranks = group.communicator.ranks
    return ranks.index(global_rank) if global_rank in ranks else None


def plain_op(op: Any) -> str:
    """The engine's name of an operation that torch names; nobody's for another one."""
    return NAMES.get(id(op), "")


def plain_list(value: Any) -> Any:
    """A list, empty where there is none; None for what is neither."""
    if type(value) is list:
        return value
    return [] if value is None else None


def plain(array: Any) -> Any:
    """A tensor's memory, to read and to write to, which autograd does not count; None for what is no plain tensor."""
    return array.data if type(array) is Tensor and not array.is_inference() else None


def handed(group: Group, work: collshim.work.Work[Any], async_op: bool, outputs: Any) -> Work | None:
    """What a repeated call returns; ``outputs`` is a list or one array."""
    process_group: Any = required().default if group is None else group
    if async_op:
        return Work(work, process_group.deadline, outputs if type(outputs) is list else [outputs])
    complete(work, process_group.deadline, None)
    return None


def posted(
    group: ProcessGroup,
    async_op: bool,
    title: str,
    call: Call,
    arguments: tuple[Any, ...],
    outputs: list[Any],
    inputs: Sequence[Any] | None = None,
    deadline: float | None = None,
) -> Work | None:
    """Post a call; its work with ``async_op``, else None once it is complete.

    ``title`` and ``inputs``, by default the outputs, are what a profiler sees; ``deadline`` is None for the group's.
    """
    if async_op:
        return started(group, title, call, arguments, outputs, inputs, deadline)
    if without_memory(outputs or inputs):
        return None
    limit = group.deadline if deadline is None else deadline
    event = begun(group.backend, title, outputs if inputs is None else inputs)
    work = accepted(group, call, *arguments) if event is None else _watched(event, group, call, arguments)
    complete(work, limit, event)
    return None


def awaited(group: ProcessGroup, title: str, call: Call) -> collshim.work.Work[Any]:
    """Post a call and wait for it; its work, with the result."""
    event = begun(group.backend, title, [])
    work = accepted(group, call) if event is None else _watched(event, group, call, ())
    complete(work, group.deadline, event)
    return work


def started(
    group: ProcessGroup,
    title: str,
    call: Call,
    arguments: tuple[Any, ...],
    outputs: list[Any],
    inputs: Sequence[Any] | None = None,
    deadline: float | None = None,
) -> Work:
    """Post a call; its work. See ``posted`` for the arguments."""
    limit = group.deadline if deadline is None else deadline
    if without_memory(outputs or inputs):
        return Work(collshim.work.Settled(None), limit, outputs)
    event = begun(group.backend, title, outputs if inputs is None else inputs)
    work = accepted(group, call, *arguments) if event is None else _watched(event, group, call, arguments)
    return Work(work, limit, outputs, event)


def accepted(group: ProcessGroup, call: Callable[..., T], *arguments: Any) -> T:
    """Post a call; what the engine refuses on this rank is a RuntimeError too, as what gloo refuses."""
    group.posted += 1
    try:
        if torch.is_inference_mode_enabled():  # what the engine makes is written to after the mode may have ended
            with torch.inference_mode(False), torch.no_grad():
                return call(group.communicator, *arguments)
        return call(group.communicator, *arguments)
    except ArgumentError as error:
        kind = also(type(error), RuntimeError)
        raise kind(*error.args) from error.__cause__


def without_memory(arrays: Sequence[Any] | None) -> bool:
    """Whether these are tensors on meta, or fake ones: there is nothing to move, so torch does nothing and succeeds."""
    first = arrays[0] if arrays else None
    if type(first) is torch.Tensor:
        return first.is_meta
    return isinstance(first, torch.Tensor) and (first.is_meta or isinstance(first, FakeTensor))


def _watched(event: Event, group: ProcessGroup, call: Call, arguments: tuple[Any, ...]) -> collshim.work.Work[Any]:
    """``accepted`` where a profiler watches."""
    try:
        return event.around(lambda: accepted(group, call, *arguments))
    except Exception:
        event.end()
        raise
