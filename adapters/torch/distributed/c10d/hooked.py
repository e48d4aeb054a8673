"""torch's hooks around a group's calls, since torch 2.15: its flight recorder, its NaN check, the program's hooks.

Only the operators in C++ run hooks. So on a group that may have hooks, a call goes through the method of torch's class
that has the same meaning. The operator of that method runs the hooks, and between them it calls the group's backend to
carry out the call. This backend is a ``Carrier``, which posts the call.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from functools import partial, wraps
from types import FunctionType
from typing import Any, TypeVar

import torch
import torch._C._distributed_c10d
import torch.distributed
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor

from collshim.torch_release import HAS_PYTHON_BACKENDS
from collshim.world import peek

_bindings: Any = torch._C._distributed_c10d

C = TypeVar("C", bound=type)

Arguments = Callable[..., list[Any]]
"""A function that takes the arguments of a group's method, and returns the arguments of torch's method."""

_PLAIN = (Tensor, torch.nn.Parameter)
"""The classes of the tensors that go through C++; a different class may take over the operator."""


class _Local(threading.local):
    """The state of a thread: the post that C++ is to carry out, and the group whose post is being carried out."""

    post: Callable[[], Any] | None = None
    group: Any = None


_local = _Local()


def may_have_hooks() -> bool:
    """Return whether torch attaches hooks to every new group: its NaN check, or, by default, its flight recorder.

    ``thread_ranks`` keeps the process's recorder from recording ranks that are threads.
    """
    world = peek()
    if not HAS_PYTHON_BACKENDS or os.environ.get("TORCH_DIST_NAN_CHECK") == "1":
        return HAS_PYTHON_BACKENDS
    if world is not None and world.is_thread:
        return False
    sizes = (os.environ.get(name) for name in ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"))
    return int(next(filter(None, sizes), 2000)) > 0


class Carrier(_bindings.Backend):  # type: ignore[misc]  # its class is a value of the untyped bindings
    """A group's backend for C++: torch 2.15 takes a group's name from its backends, and its operators call them."""

    def __init__(self, group: Any) -> None:
        super().__init__(group.rank(), group.size())
        self._group = weakref.ref(group)  # C++ holds the backend for the group, which no collector of cycles sees

    def getBackendName(self) -> str:
        """Return "collshim": see ``TorchGroup``."""
        return "collshim"

    def monitored_barrier(self, opts: Any, wait_all_ranks: bool) -> None:
        """Call the group's method, for ``torch.ops.c10d``; it has no hooks."""
        group: Any = self._group()
        group.monitored_barrier(opts.timeout, wait_all_ranks)

    def _carry(self, name: str, arguments: tuple[Any, ...]) -> Any:
        """Carry out the post that waits; if there is none, the program has called an operator of ``torch.ops.c10d``."""
        group = self._group()
        post = _local.post or partial(getattr(group, name), *arguments)
        outer, _local.post, _local.group = _local.group, None, group
        try:
            return post()
        finally:
            _local.group = outer


def hooked(kind: C) -> C:
    """Decorate a class of groups, so that from torch 2.15 on its calls run a group's hooks."""
    for name, method in list(vars(kind).items()) if HAS_PYTHON_BACKENDS else ():
        if isinstance(method, FunctionType) and method.__name__ in _THROUGH:
            through = _through(method, *_THROUGH[method.__name__])
            setattr(kind, name, through if name == method.__name__ else _Alias(name, through))
    return kind


class _Alias:
    """An older name of a method: Python finds the method under it, and C++ the name in torch's class.

    C++ looks for a method in Python under both names before it carries out the call itself.
    """

    def __init__(self, name: str, method: Callable[..., Any]) -> None:
        self._name = name
        self._method = method

    def __get__(self, group: Any, kind: type) -> Any:
        if group is not None and _local.post is not None:
            return getattr(torch.distributed.ProcessGroup, self._name).__get__(group)
        return self._method.__get__(group, kind)


def _through(method: Callable[..., Any], name: str, arguments_of: Arguments) -> Callable[..., Any]:
    """Return the method with hooks: it goes through the method of torch's class with this name."""
    in_torch = getattr(torch.distributed.ProcessGroup, name)

    def call(self: Any, *values: Any, **named: Any) -> Any:
        if not self.is_hooked or _local.group is self or _bindings._allow_inflight_collective_as_graph_input():
            return method(self, *values, **named)
        try:
            arguments = arguments_of(*values, **named)
        except TypeError:  # the method accepts it, or raises a better error
            return method(self, *values, **named)
        work: Any = None

        def post() -> Any:
            nonlocal work
            work = method(self, *values, **named)
            return work

        outer, _local.post = _local.post, post
        try:
            in_torch(self, *arguments)  # it returns torch's object for the work
        finally:
            _local.post = outer
        return work

    call.__code__ = call.__code__.replace(co_name=name)  # C++ calls a method in Python, unless it is called from there
    return wraps(method)(call)


def _tensor(value: Any, layouts: tuple[torch.layout, ...] = (torch.strided,)) -> Tensor:
    """Return a tensor for C++ and the hooks, detached, because C++ would otherwise warn in the backward pass.

    Raises:
        TypeError: C++ has no operator for this kind of tensor. The other functions for arguments raise this too.
    """
    if type(value) not in _PLAIN or value.device.type not in ("cpu", "cuda") or value.layout not in layouts:
        raise TypeError
    if value.is_quantized or value.is_nested or is_functorch_wrapped_tensor(value):
        raise TypeError
    tensor: Tensor = value
    return tensor.detach() if tensor.requires_grad else tensor


def _list(values: Any) -> list[Any]:
    if isinstance(values, Tensor):
        return [values]
    if not isinstance(values, list | tuple):  # only the method may consume an iterator
        raise TypeError
    return list(values)


def _row(values: Any) -> list[Tensor]:
    return [_tensor(value) for value in _list(values)]


def _filled(values: Any) -> list[Tensor]:
    """Return a list with at least one tensor, from which C++ takes the device."""
    row = _row(values)
    if not row:
        raise TypeError
    return row


def _rows(values: Any) -> list[list[Tensor]]:
    """Return lists of tensors, one per tensor of this rank; a plain list becomes the only one."""
    values = _list(values)
    return [_row(values)] if values and isinstance(values[0], Tensor) else [_row(row) for row in values]


def _number(value: Any) -> int:
    """Return a number that C++ takes as an ``int``."""
    if type(value) is not int or not -(2**31) <= value < 2**31:
        raise TypeError
    return value


def _options(kind: str, opts: Any) -> Any:
    """Return torch's options; if the caller passed a root instead of options, return options with this root."""
    known = getattr(_bindings, kind)
    if isinstance(opts, known):
        return opts
    options = known()
    if type(opts) is int and hasattr(options, "rootRank"):
        options.rootRank = opts
    return options


def _of_tensors(kind: str) -> Arguments:
    return lambda tensors, opts=None, *rest, **named: [_filled(tensors), _options(kind, opts)]


def _of_all_reduce(tensors: Any, opts: Any = None, *rest: Any, **named: Any) -> list[Any]:
    own = _list(tensors)
    if len(own) == 1:  # gloo's sparse form
        return [[_tensor(own[0], (torch.strided, torch.sparse_coo))], _options("AllreduceOptions", opts)]
    return [_filled(own), _options("AllreduceOptions", opts)]


def _of_lists(kind: str, outputs_of: Callable[[Any], Any], inputs_of: Callable[[Any], Any]) -> Arguments:
    return lambda outputs, inputs, opts=None, timeout=None: [
        outputs_of(outputs),
        inputs_of(inputs),
        _options(kind, opts),
    ]


def _of_two(kind: str) -> Arguments:
    return lambda output, input, opts=None: [_tensor(output), _tensor(input), _options(kind, opts)]


def _of_gather_single(output: Any, input: Any, opts: Any = None) -> list[Any]:
    outputs = [] if output is None else [[_tensor(output)]]
    return [outputs, [_tensor(input)], _options("GatherOptions", opts)]


def _of_all_to_all_single(
    output: Any, input: Any, output_split_sizes: Any = (), input_split_sizes: Any = (), opts: Any = None, *rest: Any
) -> list[Any]:
    given = [[] if sizes is None else sizes for sizes in (output_split_sizes, input_split_sizes)]
    sizes = [[_number(size) for size in each] for each in given]
    return [_tensor(output), _tensor(input), *sizes, _options("AllToAllOptions", opts)]


_ALIKE: dict[str, Arguments] = {
    "broadcast": _of_tensors("BroadcastOptions"),
    "allreduce": _of_all_reduce,
    "allreduce_coalesced": _of_tensors("AllreduceCoalescedOptions"),
    "reduce": _of_tensors("ReduceOptions"),
    "allgather": _of_lists("AllgatherOptions", _rows, _filled),
    "allgather_coalesced": _of_lists("AllgatherOptions", _rows, _filled),
    "all_gather_single": _of_two("AllgatherOptions"),
    "all_gather_single_coalesced": _of_lists("AllgatherOptions", _filled, _filled),
    "gather": _of_lists("GatherOptions", _rows, _filled),
    "scatter": _of_lists("ScatterOptions", _filled, _rows),
    "reduce_scatter": _of_lists("ReduceScatterOptions", _filled, _rows),
    "reduce_scatter_single": _of_two("ReduceScatterOptions"),
    "reduce_scatter_single_coalesced": _of_lists("ReduceScatterOptions", _filled, _filled),
    "alltoall": _of_lists("AllToAllOptions", _filled, _filled),
    "all_to_all_single": _of_all_to_all_single,
    "send": lambda tensors, dstRank, tag=0: [_filled(tensors), _number(dstRank), _number(tag)],
    "recv": lambda tensors, srcRank, tag=0: [_filled(tensors), _number(srcRank), _number(tag)],
    "recv_anysource": lambda tensors, tag=0: [_filled(tensors), _number(tag)],
    "barrier": lambda opts=None, timeout=None: [_options("BarrierOptions", opts)],
}

_THROUGH = {name: (name, arguments_of) for name, arguments_of in _ALIKE.items()} | {
    "gather_single": ("gather", _of_gather_single)  # a backend in Python has no ``gather_single`` for C++
}
"""The name of each method's counterpart in torch's class, and its arguments."""


def _carrying(name: str) -> Callable[..., Any]:
    return lambda self, *arguments: self._carry(name, arguments)


for _name, _ in _THROUGH.values():
    setattr(Carrier, _name, _carrying(_name))
