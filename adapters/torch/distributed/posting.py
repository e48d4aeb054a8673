"""How a call is posted: repeated, or validated, submitted to the engine, and shown to a profiler if one runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.autograd import profiler

import collshim.work
from collshim.calls.call import EAGER_BYTES
from collshim.calls.collective import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BARRIER,
    BROADCAST,
    GATHER,
    REDUCE,
    REDUCE_SCATTER,
    SCATTER,
    SEND,
    Collective,
)
from collshim.calls.repeats import Repeated, key_of, repeats_of
from collshim.communicator import Communicator
from collshim.errors import ArgumentError, DeadlineError, also
from collshim.torch.distributed.arguments import NAMES
from collshim.torch.distributed.membership import STATE, Group, Membership, ProcessGroup
from collshim.torch.distributed.profiling import Event, begin_event
from collshim.torch.distributed.work import Work, complete, timed_out
from collshim.work import COMPLETE
from collshim.world import peek

T = TypeVar("T")

Call = Callable[..., collshim.work.Work[Any]]
"""A function that posts a call; its arguments are the communicator and then the call's arguments."""


UNKNOWN: Any = object()
"""The result of ``repeat`` for a call that is not like any earlier, validated one."""

_NOTHING: list[Any] = []
_NO_ARRAYS = _NOTHING, _NOTHING
_infers = torch.is_inference_mode_enabled
_STRIDED = torch.strided
_UNCOUNTED = {ALL_REDUCE, REDUCE, BROADCAST, SCATTER, ALL_TO_ALL}
"""The collectives whose tensors gloo's C++ writes without autograd's knowledge: see ``forms.uncounted``."""


def repeat(
    group: Group,
    async_op: bool,
    outputs: Any,
    collective: Collective,
    array: Any,
    out: Any,
    op: Any = None,
    ranks: tuple[Any, Any] | None = None,
) -> Any:
    """Post a call like an earlier, validated one, and return the result of ``post``.

    Return UNKNOWN, with nothing posted, if the call needs validation.

    Args:
        group, async_op: the function's own arguments.
        outputs: the results of the Work: a list of arrays, or one array.
        collective: the engine's record of the collective.
        array, out: see ``Communicator``; None for a value that is not a list although torch requires one.
        op: torch's reduce operation, or the splits of an all_to_all.
        ranks: the root of a rooted collective, as a global rank and as a rank in the group.
    """
    process_group = _unwatched(group)
    if process_group is None or array is None or out is None:
        return UNKNOWN
    if process_group.held is not None:
        return process_group.held.add_plain(collective, array, op, async_op)
    comm = process_group.communicator
    may_repeat = comm.repeats and not _infers() and (ranks is None or _is_rank(*ranks))
    if may_repeat and (not async_op or comm.is_alone()):
        for known in repeats_of(comm, collective, id(op), ranks, array, out):
            work = known.post(array, out) if async_op else known.call(array, out)
            if work is COMPLETE and not process_group.order:  # the most frequent case
                process_group.posted += 1
                return None
            if work is not None:
                return _posted(process_group, async_op, collective, work, outputs)
    work = _repeat_planned(process_group, async_op, collective, array, out, op, ranks)
    return UNKNOWN if work is None else _posted(process_group, async_op, collective, work, outputs)


def _posted(
    group: ProcessGroup, async_op: bool, collective: Collective, work: collshim.work.Work[Any], outputs: Any
) -> Any:
    """Return the ``Work`` of a call that was posted; or wait for the call, and return None."""
    group.posted += 1
    if not async_op:
        return None if work is COMPLETE and not group.order else _wait(group, work)
    listed = outputs if type(outputs) is list else [outputs]
    size = group.communicator.size if listed is not outputs and collective is ALL_GATHER else None
    return Work(work, group.deadline, listed, size=size, order=group.order)


def _wait(process_group: ProcessGroup, work: collshim.work.Work[Any]) -> None:
    if process_group.order:
        complete(work, process_group.deadline, None, process_group.order)
        return
    try:
        work.wait(process_group.deadline)
    except DeadlineError as error:
        raise timed_out(error, process_group.deadline) from error.__cause__


def _is_rank(global_rank: Any, group_rank: Any) -> bool:
    """Return whether the rank is an int; a float or a bool may equal the rank of an earlier call."""
    return type(group_rank if global_rank is None else global_rank) is int


def repeat_barrier(group: Group) -> Any:
    """Wait at a barrier; return UNKNOWN, with nothing posted, if the call needs validation."""
    process_group = quick(group)
    if process_group is None or process_group.held is not None:
        return UNKNOWN
    comm, work = process_group.communicator, None
    for known in comm.repeats.get(BARRIER, ()):
        work = known.call(_NOTHING, _NOTHING)
    if work is None:
        work = comm.post_barrier(waits=True)
        if work is COMPLETE:
            call = Repeated(BARRIER, _NO_ARRAYS, _NO_ARRAYS, lambda *_: _NO_ARRAYS, False)
            comm.keep_repeat(BARRIER, None, None, call)
    process_group.posted += 1
    return None if work is COMPLETE and not process_group.order else _wait(process_group, work)


def _repeat_planned(
    process_group: ProcessGroup,
    async_op: bool,
    collective: Collective,
    array: Any,
    out: Any,
    op: Any,
    ranks: tuple[Any, Any] | None,
) -> collshim.work.Work[Any] | None:
    """Repeat a call by its plan; return None, with nothing posted, if it needs validation."""
    root = None
    if ranks is not None and (root := _root(process_group, *ranks)) is None:
        return None
    comm = process_group.communicator
    reduction = NAMES.get(id(op), "") if collective.reduces else op
    counts = type(out) is not Tensor or (comm.counts_writes if out.is_cpu else comm.checks_on_cuda)
    if not counts:
        work = comm.recall(collective, array, out, reduction, root, not async_op)
        if work is not None:
            return work
    if _infers() or (collective in _UNCOUNTED and _warns(out)):
        return None
    planned = _arrange(counts, collective, reduction, root, comm, array, out)
    is_alone = not async_op or comm.is_alone()
    work = comm.repeat_by_plan(collective, *planned, reduction, root, waits=not async_op)
    may_keep = work is COMPLETE or (async_op and is_alone and work is not None)
    if may_keep and (op is None or reduction) and comm.may_keep(collective, reduction, root):  # ``id`` identifies these
        key = key_of(collective, id(op), ranks, array, out)
        arrange = partial(_arrange, counts, collective, reduction, root)
        call = Repeated(key, (array, out), planned, arrange, collective not in _UNCOUNTED)
        comm.keep_repeat(collective, reduction, root, call)
    return work


def _warns(out: Any) -> bool:
    """Return whether the backward pass of this output must warn: see ``cuts``."""
    return type(out) is Tensor and out.requires_grad and torch.is_grad_enabled()


def _arrange(
    counts: bool, collective: Collective, op: Any, root: Any, comm: Communicator, array: Any, out: Any
) -> tuple[Any, Any]:
    """Return the arrays in the engine's form.

    As with gloo's C++, autograd must not count writes to some outputs as changes: the engine writes to their ``data``.
    ``counts`` is whether autograd would count them.
    """
    is_uncounted = type(out) is Tensor and collective in _UNCOUNTED
    if is_uncounted and (counts or out.requires_grad or out.layout is not _STRIDED or not out.is_contiguous()):
        memory = out.data
        array, out = (memory if array is out else array), memory
    if collective in _ARRANGED:
        return _ARRANGED[collective](comm, array, out, op, root)
    return array, out


def repeat_message(
    group: Group, collective: Collective, tensor: Any, ranks: tuple[Any, Any], tag: Any, *, waits: bool = False
) -> Any:
    """Post a send or recv like an earlier, validated one; return its work, or UNKNOWN with nothing posted.

    ``ranks`` is the peer, as a global rank and as a rank in the group; (None, None) to receive from any rank. If the
    caller ``waits`` at once, the work may be the engine's ``COMPLETE``.
    """
    process_group = quick(group)
    if process_group is None or process_group.held is not None or type(tensor) is not Tensor or type(tag) is not int:
        return UNKNOWN
    peer, sends = _root(process_group, *ranks), collective is SEND
    comm = process_group.communicator
    if peer == comm.rank or (type(peer) is not int and (sends or ranks != (None, None))):
        return UNKNOWN
    at_once = waits or (sends and tensor.is_cpu and tensor.nbytes <= EAGER_BYTES)
    if at_once and comm.repeats:
        for known in comm.repeats.get((collective, tag, peer), ()):
            if (work := known.call(tensor, _NOTHING if sends else tensor)) is not None:
                process_group.posted += 1
                return work if waits and work is COMPLETE else Work(work, process_group.deadline, [tensor])
    work = _repeat_planned_message(comm, collective, tensor, tag, peer, at_once)
    if work is None:
        return UNKNOWN
    process_group.posted += 1
    return work if waits and work is COMPLETE else Work(work, process_group.deadline, [tensor])


def _repeat_planned_message(
    comm: Communicator, collective: Collective, tensor: Tensor, tag: int, peer: int | None, waits: bool
) -> collshim.work.Work[Any] | None:
    """Send or receive by a plan; return None, with nothing posted, if the call needs validation."""
    memory = tensor if (sends := collective is SEND) else tensor.data
    work = comm.repeat_by_plan(collective, memory, None if sends else memory, tag, peer, waits=waits)
    if work is COMPLETE:
        own, planned = ((tensor, _NOTHING), (tensor, None)) if sends else ((tensor, tensor), (memory, memory))
        key = collective, tag, peer
        comm.keep_repeat(*key, Repeated(key, own, planned, lambda *arrays: arrays[1:], False))
    return work


def _arrange_gather(comm: Communicator, tensor: Any, parts: Any, op: Any, root: Any) -> tuple[Any, Any]:
    """Accept the list only on the root."""
    is_root = root == comm.rank
    return (tensor if bool(parts) == is_root else None), parts or None


def _arrange_scatter(comm: Communicator, parts: Any, output: Any, op: Any, root: Any) -> tuple[Any, Any]:
    """Accept the list only on the root."""
    if bool(parts) != (root == comm.rank):
        return None, None
    return parts or output, output


def _arrange_all_to_all(comm: Communicator, array: Any, out: Any, splits: Any, root: Any) -> tuple[Any, Any]:
    """Split pieces of length 1, which the engine would take for parts without dimension 0, if ranks compare calls."""
    if not comm.checks or splits is not None or type(array) not in _ARRAYS or array.shape[:1] != (comm.size,):
        return array, out
    if type(out) not in _ARRAYS or not out.ndim:
        return None, None
    return array[:, None], out[:, None]


def _arrange_reduce_scatter(comm: Communicator, array: Any, out: Any, op: Any, root: Any) -> tuple[Any, Any]:
    """Split parts of length 1 that lie end to end, which the engine would take for parts without dimension 0."""
    is_joined = type(array) in _ARRAYS and type(out) in _ARRAYS and array.ndim == out.ndim
    return array[:, None] if is_joined and array.shape[:1] == (comm.size,) else array, out


_MESSAGES = ("send", "recv", "recvAnySource")
"""The titles of the calls that are not part of the order of a group's collectives."""

_ARRAYS = (Tensor, np.ndarray)
_ARRANGED = {
    GATHER: _arrange_gather,
    SCATTER: _arrange_scatter,
    REDUCE_SCATTER: _arrange_reduce_scatter,
    ALL_TO_ALL: _arrange_all_to_all,
}
"""How to arrange a call's arrays if the engine takes them in a different form than torch."""


def quick(group: Any) -> ProcessGroup | None:
    """Return the ``ProcessGroup`` for ``group``; None if it needs a lookup, in inference mode, or under a profiler."""
    return None if _infers() else _unwatched(group)


def _unwatched(group: Any) -> ProcessGroup | None:
    world = peek()
    state: Membership | None = None if world is None else world.state.get(STATE)
    if state is None or profiler._is_profiler_enabled:
        return None
    if group is None:
        return state.default
    is_own = getattr(group, "is_whole", None) is not None  # isinstance would call torch's metaclass, in Python
    return group if is_own and group in state.groups else None


def _root(group: ProcessGroup, global_rank: Any, group_rank: Any) -> Any:
    """Return the rank in the group from a global rank or a rank in the group; None if that needs validation."""
    if global_rank is None:
        return group_rank
    if group_rank is not None or type(global_rank) is not int:
        return None
    if group.is_whole:
        return global_rank
    ranks = group.communicator.ranks
    return ranks.index(global_rank) if global_rank in ranks else None


def unless_list(value: Any) -> Any:
    """Return the value, or None if it is a list."""
    return None if type(value) is list else value


def plain_list(value: Any) -> Any:
    """Return a list unchanged, an empty list for None, and None for anything else."""
    return value if type(value) is list else [] if value is None else None


def post(
    group: ProcessGroup,
    async_op: bool,
    title: str,
    call: Call,
    arguments: tuple[Any, ...],
    outputs: list[Any],
    inputs: Sequence[Any] | None = None,
    deadline: float | None = None,
) -> Work | None:
    """Post a call; return its work with ``async_op``, and wait and return None without.

    A profiler shows ``title`` and ``inputs``, by default the outputs; a ``deadline`` of None means the group's
    deadline.
    """
    if async_op:
        return start(group, title, call, arguments, outputs, inputs, deadline)
    if lacks_memory(outputs or inputs):
        return None
    work, event = _post_watched(group, title, call, arguments, outputs if inputs is None else inputs)
    complete(work, group.deadline if deadline is None else deadline, event, group.order)
    return None


def post_and_wait(group: ProcessGroup, title: str, call: Call) -> collshim.work.Work[Any]:
    """Post a call, wait for it, and return its work, which has the result."""
    work, event = _post_watched(group, title, call, (), [])
    complete(work, group.deadline, event, None if title in _MESSAGES else group.order)
    return work


def start(
    group: ProcessGroup,
    title: str,
    call: Call,
    arguments: tuple[Any, ...],
    outputs: list[Any],
    inputs: Sequence[Any] | None = None,
    deadline: float | None = None,
    size: int | None = None,
) -> Work:
    """Post a call and return its work, which stores ``size``; the other arguments are those of ``post``."""
    limit = group.deadline if deadline is None else deadline
    if lacks_memory(outputs or inputs):
        return Work(collshim.work.CompletedWork(None), limit, outputs)
    work, event = _post_watched(group, title, call, arguments, outputs if inputs is None else inputs)
    return Work(work, limit, outputs, event, size, order=None if title in _MESSAGES else group.order)


def submit(group: ProcessGroup, call: Callable[..., T], *arguments: Any) -> T:
    """Submit a call to the engine; if it refuses the call on this rank, raise a RuntimeError too, as gloo does."""
    group.posted += 1
    try:
        if torch.is_inference_mode_enabled():  # the engine may write to its tensors after the mode has ended
            with torch.inference_mode(False), torch.no_grad():
                return call(group.communicator, *arguments)
        return call(group.communicator, *arguments)
    except ArgumentError as error:
        kind = also(type(error), RuntimeError)
        raise kind(*error.args) from error.__cause__


def lacks_memory(arrays: Sequence[Any] | None) -> bool:
    """Return whether these are meta or fake tensors, for which torch does nothing and reports success."""
    first = arrays[0] if arrays else None
    if type(first) is torch.Tensor:
        return first.is_meta
    return isinstance(first, torch.Tensor) and (first.is_meta or isinstance(first, FakeTensor))


def _post_watched(
    group: ProcessGroup, title: str, call: Call, arguments: tuple[Any, ...], inputs: Sequence[Any]
) -> tuple[collshim.work.Work[Any], Event | None]:
    """Post a call; return its work and, if a profiler runs, the event that it sees."""
    event = begin_event(group.backend, title, inputs)
    if event is None:
        return submit(group, call, *arguments), None
    try:
        return event.around(lambda: submit(group, call, *arguments)), event
    except Exception:
        event.end()
        raise
