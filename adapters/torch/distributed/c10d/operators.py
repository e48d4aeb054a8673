"""``torch.ops.c10d``: its operators, called with boxed groups of the engine.

Graphs and some libraries call these operators with ``group.boxed()``. Torch's own kernels look for a backend in C++,
which a group in Python does not have before torch 2.15: see ``hooked``. So from the first ``boxed()`` on, a kernel with
a higher priority passes calls on the engine's groups to the groups' methods, and all other calls to torch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
import torch.distributed
from torch.distributed import ReduceOp

from collshim.torch.distributed.membership import ProcessGroup

_KEY = "BackendSelect"
"""The dispatch key that has a higher priority than those of devices, even in inference mode."""

Arguments = Mapping[str, Any]


def _options(arguments: Arguments) -> SimpleNamespace:
    """Return the arguments by the option names of a group's method."""
    milliseconds = arguments.get("timeout", -1)
    options = SimpleNamespace(
        rootRank=arguments.get("root_rank", 0),
        rootTensor=arguments.get("root_tensor", 0),
        timeout=None if milliseconds < 0 else timedelta(milliseconds=milliseconds),
    )
    if "reduce_op" in arguments:
        options.reduceOp = ReduceOp(ReduceOp.RedOpType(arguments["reduce_op"].op()))
    return options


def _call(method: str, *names: str) -> Callable[[Any, Arguments], Any]:
    """Return a function that calls a group's method with the arguments of these names, and options."""
    return lambda group, arguments: getattr(group, method)(*(arguments[name] for name in names), _options(arguments))


def _monitored_barrier(group: Any, arguments: Arguments) -> None:
    group.monitored_barrier(_options(arguments).timeout, arguments["wait_all_ranks"])


_CALLS: dict[str, Callable[[Any, Arguments], Any]] = {
    "allreduce_": _call("allreduce", "tensors"),
    "allreduce_coalesced_": _call("allreduce_coalesced", "tensors"),
    "broadcast_": _call("broadcast", "tensors"),
    "reduce_": _call("reduce", "tensors"),
    "allgather_": _call("allgather", "output_tensors", "input_tensors"),
    "allgather_coalesced_": _call("allgather_coalesced", "output_lists", "input_list"),
    "_allgather_base_": _call("all_gather_single", "output_tensor", "input_tensor"),
    "allgather_into_tensor_coalesced_": _call("all_gather_single_coalesced", "outputs", "inputs"),
    "gather_": _call("gather", "output_tensors", "input_tensors"),
    "scatter_": _call("scatter", "output_tensors", "input_tensors"),
    "reduce_scatter_": _call("reduce_scatter", "output_tensors", "input_tensors"),
    "_reduce_scatter_base_": _call("reduce_scatter_single", "output_tensor", "input_tensor"),
    "reduce_scatter_tensor_coalesced_": _call("reduce_scatter_single_coalesced", "outputs", "inputs"),
    "alltoall_": _call("alltoall", "output_tensors", "input_tensors"),
    "alltoall_base_": _call("all_to_all_single", "output", "input", "output_split_sizes", "input_split_sizes"),
    "barrier": _call("barrier"),
    "send": lambda group, arguments: group.send(arguments["tensors"], arguments["dst"], arguments["tag"]),
    "recv_": lambda group, arguments: group.recv(arguments["tensors"], arguments["src"], arguments["tag"]),
    "recv_any_source_": lambda group, arguments: group.recv_anysource(arguments["tensors"], arguments["tag"]),
    "monitored_barrier_": _monitored_barrier,
}
"""For each operator, a function that calls a group's method; an operator's outputs are its first arguments."""


_installing = threading.Lock()
_installed: list[torch.library.Library] = []
"""The registration of the kernels, which lasts as long as this object."""


def install() -> None:
    """Let the operators accept boxed groups of the engine, for the rest of the process."""
    with _installing:  # ranks may be threads
        if not _installed:
            library = torch.library.Library("c10d", "IMPL")
            for name in _CALLS:
                library.impl(name, partial(_run, name), _KEY)
            _installed.append(library)


def _run(name: str, *values: Any, **named: Any) -> Any:
    """Run an operator by a method of its group, or by torch's kernel if the group is not the engine's."""
    operator = getattr(torch.ops.c10d, name).default
    schema = operator._schema
    arguments = {argument.name: argument.default_value for argument in schema.arguments}
    arguments.update(zip(arguments, values, strict=False))
    arguments.update(named)
    group = torch.distributed.ProcessGroup.unbox(arguments["process_group"])
    if not isinstance(group, ProcessGroup):
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, _KEY))):
            return operator(*values, **named)
    work = _CALLS[name](group, arguments)
    if not schema.returns:
        return None
    boxed = work.boxed()
    return boxed if len(schema.returns) == 1 else (next(iter(arguments.values())), boxed)
