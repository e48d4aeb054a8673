"""Several calls as one: all_reduce_coalesced, all_gather_coalesced, _coalescing_manager, as in torch 2.13.0."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.distributed import ReduceOp
from torch.futures import Future

from collshim.adapting.refusing import refuse
from collshim.arrays import Array, as_torch, is_array
from collshim.calls.collective import ALL_REDUCE, Collective
from collshim.communicator import Communicator
from collshim.together import Together
from collshim.torch.distributed import collectives
from collshim.torch.distributed.arguments import NAMES, reduction_of, require_list, same_dtype, warn
from collshim.torch.distributed.forms import parts_like, place, values
from collshim.torch.distributed.membership import Group, ProcessGroup, group_of, warn_outside
from collshim.torch.distributed.overriding import overridable
from collshim.torch.distributed.posting import UNKNOWN, Call, post, quick, start
from collshim.torch.distributed.work import Work, complete
from collshim.work import CompletedWork
from collshim.work import Work as EngineWork


class _Held(NamedTuple):
    """A call that is held back until its ``_coalescing_manager`` ends; then it is posted, or joined with other calls.

    The last of its ``arguments`` is the operation if it reduces.
    """

    title: str
    call: Call
    arguments: tuple[Any, ...]
    output: Any
    source: Any


class _HeldCalls(list[_Held]):
    """The calls that a group's open ``_coalescing_manager`` holds back."""

    def add_plain(self, collective: Collective, tensor: Any, op: Any, async_op: bool) -> Any:
        """Hold back a plain all_reduce, as ``all_reduce`` would; return UNKNOWN if its arguments need validation."""
        name = NAMES.get(id(op))
        if (
            collective is not ALL_REDUCE
            or name is None
            or type(tensor) is not Tensor
            or torch.is_inference_mode_enabled()
        ):
            return UNKNOWN
        if tensor.layout is not torch.strided or tensor.is_complex():
            return UNKNOWN
        self.append(_Held("all_reduce", collectives.all_reduce, (tensor, name), tensor, tensor))
        return _IllegalWork() if async_op else None


class _IllegalWork(Work):
    """The result of ``async_op=True`` inside a ``_coalescing_manager``; only the manager can be waited for."""

    def __init__(self) -> None:
        super().__init__(CompletedWork(None), None, [])

    def __getattribute__(self, name: str) -> Any:
        if name in ("is_success", "exception", "wait", "source_rank", "_source_rank", "result", "synchronize"):
            refuse(ValueError, f"Illegal to call {name} on IllegalWork object")
        return super().__getattribute__(name)


class _CoalescingManager:
    """The works that a ``_coalescing_manager`` with ``async_ops=True`` has posted."""

    def __init__(self) -> None:
        self.works: list[Work] = []

    def append(self, work: Work | None = None) -> None:
        """Add a work to wait for."""
        if work is not None:
            self.works.append(work)

    def wait(self) -> None:
        """Wait for all works."""
        for work in self.works:
            work.wait()


@contextmanager
def _coalescing_manager(group: Group = None, device: Any = None, async_ops: bool = False) -> Iterator[Any]:
    """Post the all_reduce, all_gather_single or reduce_scatter_single calls of the block as one call, at its end.

    Args:
        group: the group of the calls that are joined; None for all ranks. Calls on other groups are posted at once.
        device: accepted, but has no effect.
        async_ops: whether to leave the block at once, so that the program must call the manager's ``wait``.

    Raises:
        ValueError: a manager of the group is already open.
        RuntimeError: the calls were of different functions; errors of the calls themselves.
    """
    process_group = group_of(group)
    manager, calls = _CoalescingManager(), _HeldCalls()
    if process_group is None:  # each call in the block only warns
        yield manager
        return
    if process_group.held is not None:
        refuse(ValueError, "ProcessGroup has non-empty op list at the start of coalescing")
    process_group.held = calls
    try:
        yield manager
    finally:
        process_group.held = None
    if calls:
        manager.append(_post_together(process_group, async_ops, calls))


def post_or_hold(
    group: ProcessGroup,
    async_op: bool,
    title: str,
    call: Call,
    arguments: tuple[Any, ...],
    output: Any,
    source: Any,
    results: list[Any] | None = None,
) -> Work | None:
    """Post a call, or hold it back if the group's ``_coalescing_manager`` is open.

    ``results`` are the results of the Work; by default, the output.
    """
    if group.held is None:
        return post(group, async_op, title, call, arguments, results or [output], [source])
    group.held.append(_Held(title, call, arguments, output, source))
    return _IllegalWork() if async_op else None


@overridable("tensors")
def all_reduce_coalesced(
    tensors: list[Array] | Array, op: Any = ReduceOp.SUM, group: Group = None, async_op: bool = False
) -> Future[list[Any]] | None:
    """Reduce all ranks' ``tensors[i]`` in place, on every rank.

    Deprecated in torch 2.13, with a FutureWarning.

    Args:
        tensors: a list of arrays with the same dtype, or one array; the shapes are the same on every rank.
        op: a ReduceOp, as for ``all_reduce``.
        group: the group of ranks that take part; None for all ranks.
        async_op: whether to return at once.

    Returns:
        None, or with ``async_op`` a torch Future of the list. On a rank outside the group: None, with a UserWarning.

    Raises:
        TypeError, ValueError, RuntimeError: as for ``all_reduce``; the dtypes differ.
    """
    _deprecated("all_reduce_coalesced")
    arrays = [tensors] if is_array(tensors) else tensors
    require_list("tensor", arrays)
    _require_one_dtype(arrays)
    process_group = group_of(group)
    if process_group is None:
        warn_outside("all_reduce_coalesced")
        return None
    _require_some(arrays)
    call, arguments = collectives.all_reduce_coalesced, (arrays, reduction_of(op, *arrays))
    return _wait_or_future(start(process_group, "all_reduce", call, arguments, arrays), async_op)


@overridable("input_tensor_list")
def all_gather_coalesced(
    output_tensor_lists: list[list[Array]],
    input_tensor_list: list[Array],
    group: Group = None,
    async_op: bool = False,
) -> Future[list[Any]] | None:
    """Gather rank r's ``input_tensor_list[i]`` into every rank's ``output_tensor_lists[r][i]``.

    Deprecated in torch 2.13, with a FutureWarning.

    Args:
        output_tensor_lists: a list with one list per rank of the group, each with arrays like the inputs.
        input_tensor_list: arrays with the same dtype, whose shapes may differ.
        group: the group of ranks that take part; None for all ranks.
        async_op: whether to return at once.

    Returns:
        None, or with ``async_op`` a torch Future of the lists. On a rank outside the group: None, with a UserWarning.

    Raises:
        TypeError: an argument is not a list of arrays.
        ValueError: dtypes differ; the default group is not initialized.
        RuntimeError: a list's length or a shape does not fit; the ranks' calls disagree, or a rank is missing.
    """
    _deprecated("all_gather_coalesced")
    process_group = group_of(group)
    if process_group is None:
        warn_outside("all_gather_coalesced")
        return None
    require_list("input_tensor_list", input_tensor_list)
    _require_one_dtype(input_tensor_list)
    _require_some(input_tensor_list)
    _require_outputs(output_tensor_lists, input_tensor_list, process_group.size())
    places = [[place(array, "output") for array in part] for part in output_tensor_lists]

    def fill(results: list[Array]) -> None:
        for index, stacked in enumerate(results):
            for rank, part in enumerate(as_torch(stacked)):
                places[rank][index].copy_(part)

    def call(comm: Communicator) -> Any:
        return comm.all_gather_coalesced(values(input_tensor_list)).then(fill)

    return _wait_or_future(
        start(process_group, "all_gather", call, (), output_tensor_lists, input_tensor_list), async_op
    )


def _deprecated(function: str) -> None:
    advice = "If you must use it, please revisit our documentation later at "
    page = "https://pytorch.org/docs/main/distributed.html#collective-functions"
    warn(f"`torch.distributed.{function}` will be deprecated. {advice}{page}", FutureWarning)


def _require_outputs(lists: Any, inputs: list[Any], size: int) -> None:
    """Refuse ``lists`` unless each ``lists[r][i]`` is an array with the shape and dtype of ``inputs[i]``."""
    if not isinstance(lists, list):
        refuse(TypeError, "Invalid function argument: output_tensor_lists should be a list")
    for part in lists:
        require_list("output_tensor_lists", part)
        _require_one_dtype([*part, *inputs])
    expected = [tuple(array.shape) for array in inputs]
    shapes = [[tuple(array.shape) for array in part] for part in lists]
    if shapes != [expected] * size:
        text = f"invalid output tensor list: its shapes are {shapes}, should be {size} times {expected}"
        refuse(RuntimeError, f"all_gather_coalesced: {text}")


def _require_some(tensors: list[Any]) -> None:
    if not tensors:
        refuse(NotImplementedError, "There were no tensor arguments to this function: its list is empty")


def _require_one_dtype(arrays: list[Any]) -> None:
    same_dtype(arrays)


def _post_together(group: ProcessGroup, async_op: bool, entries: list[_Held]) -> Work | None:
    """Post the calls that were held back as one call, or as one call per reduce operation; see ``post``."""
    result: Work | None = _repeat(group, async_op, entries)
    if result is not UNKNOWN:
        return result
    title = entries[0].title
    reduces = title != "all_gather_single"
    by_op: dict[Any, list[_Held]] = {}
    outputs, sources = list[Any](), list[Any]()
    for entry in entries:
        outputs.append(entry.output)
        sources.append(entry.source)
        if entry.title != title:
            text = "Coalescing manager requires all collectives to be the same type, but got mixed types"
            refuse(RuntimeError, f"{text}: {', '.join(sorted({entry.title for entry in entries}))}")
        by_op.setdefault(entry.arguments[-1] if reduces else None, []).append(entry)
    return post(group, async_op, title, _post_by_op, (list(by_op.values()),), outputs, sources)


def _repeat(group: ProcessGroup, async_op: bool, entries: list[_Held]) -> Any:
    """Post all_reduces like earlier, validated ones; return UNKNOWN, with nothing posted, if there were none."""
    op = entries[0].arguments[-1]
    tensors = [entry.output for entry in entries if entry.title == "all_reduce" and entry.arguments[-1] == op]
    if len(tensors) != len(entries) or quick(group) is None:
        return UNKNOWN
    work = group.communicator.repeat_coalesced(tensors, op, waits=not async_op)
    if work is None:
        return UNKNOWN
    group.posted += 1
    if async_op:
        return Work(work, group.deadline, tensors, order=group.order)
    complete(work, group.deadline, None, group.order)
    return None


def _post_by_op(comm: Communicator, groups: list[list[_Held]]) -> EngineWork[Any]:
    if len(groups) == 1:
        return _post_as_one(comm, groups[0])
    return Together([_post_as_one(comm, entries) for entries in groups])


def _post_as_one(comm: Communicator, entries: list[_Held]) -> EngineWork[Any]:
    first = entries[0]
    if len(entries) == 1:
        return first.call(comm, *first.arguments)
    title = first.title
    outputs = [place(entry.output, f"{title}: output") for entry in entries]
    if title == "all_reduce":
        return comm.all_reduce_coalesced(outputs, first.arguments[-1], out=outputs)
    sources = [values(entry.source) for entry in entries]
    if title == "all_gather_single":
        return comm.all_gather_coalesced(sources, out=_cut(f"{title}: output_tensor", outputs, sources, comm))
    parts = _cut(f"{title}: input", sources, outputs, comm)
    return comm.reduce_scatter_coalesced(parts, first.arguments[-1], out=outputs)


def _cut(what: str, wholes: list[Any], parts: list[Any], comm: Communicator) -> list[Tensor]:
    return [parts_like(what, whole, part, comm) for whole, part in zip(wholes, parts, strict=True)]


def _wait_or_future(work: Work, async_op: bool) -> Future[list[Any]] | None:
    if async_op:
        return work.get_future()
    work.wait()
    return None
