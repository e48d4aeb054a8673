"""The operators of ``torch.ops.c10d`` and ``torch.ops._c10d_functional``, called with groups of the engine.

Graphs and some libraries call the operators of ``c10d`` with ``group.boxed()``. Torch's own kernels look for a backend
in C++, which a group in Python does not have before torch 2.15: see ``hooked``. So from the first ``boxed()`` on, a
kernel with a higher priority passes calls on the engine's groups to the groups' methods, and all other calls to torch.

Most operators of ``_c10d_functional``, which ``torch.compile`` writes into graphs, call the groups' methods themselves.
Two of them look for a backend as well; they have such a kernel from the first group of the engine on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
import torch._C._distributed_c10d
import torch.distributed
from torch import Tensor
from torch.distributed import ReduceOp

from collshim.adapting.refusing import refuse
from collshim.torch.distributed.membership import ProcessGroup

_KEY = "BackendSelect"
"""The dispatch key that has a higher priority than those of devices, even in inference mode."""

_bindings: Any = torch._C._distributed_c10d

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


def _all_gather_out(group: ProcessGroup, arguments: Arguments) -> Tensor:
    """Gather into ``out``, which ``wait_tensor`` then waits for; Inductor calls this for gathers in one bucket."""
    output: Tensor = arguments["out"]
    return _awaited(output, group.all_gather_single(output, arguments["input"]))


def _batch(group: ProcessGroup, arguments: Arguments) -> list[Tensor]:
    """Post sends and receives; return each receive's tensor, and an empty tensor for each send."""
    kinds = arguments["op_list"]
    for kind in kinds:
        if kind not in ("isend", "irecv"):
            refuse(RuntimeError, f"batch_p2p_ops: the operation is {kind!r}, should be 'isend' or 'irecv'")
    lists = [kinds, *(arguments[name] for name in ("tensors", "peer_list", "tag_list"))]
    lengths = [len(each) for each in lists]
    if len({*lengths}) > 1:
        text = "op_list, tensors, peer_list and tag_list have the lengths"
        refuse(RuntimeError, f"batch_p2p_ops: {text} {lengths}, which should be equal")
    found: list[Tensor] = []
    for kind, tensor, peer, tag in zip(*lists, strict=True):
        post = group.send if kind == "isend" else group.recv
        place = tensor.new_empty(0) if kind == "isend" else tensor
        found.append(_awaited(place, post([tensor], peer, tag)))
    return found


def _awaited(tensor: Tensor, work: Any) -> Tensor:
    _bindings._register_work(tensor, work)
    return tensor


_FUNCTIONAL: dict[str, Callable[[Any, Arguments], Any]] = {
    "all_gather_into_tensor_out": _all_gather_out,
    "batch_p2p_ops": _batch,
}
"""The operators of ``_c10d_functional`` for which torch looks for a backend; they return what torch's return."""


_installing = threading.Lock()
_installed: dict[str, torch.library.Library] = {}
"""The registration of each namespace's kernels, which lasts as long as this object."""


def install() -> None:
    """Let the operators of ``c10d`` accept boxed groups of the engine, for the rest of the process."""
    _install("c10d", {name: partial(_run, name) for name in _CALLS})


def install_functional() -> None:
    """Let all operators of ``_c10d_functional`` accept groups of the engine, for the rest of the process."""
    names = [name for name in _FUNCTIONAL if hasattr(torch.ops._c10d_functional, name)]
    _install("_c10d_functional", {name: partial(_run_functional, name) for name in names})


def _install(namespace: str, kernels: Mapping[str, Callable[..., Any]]) -> None:
    with _installing:  # ranks may be threads
        if namespace not in _installed:
            library = torch.library.Library(namespace, "IMPL")
            for name, kernel in kernels.items():
                library.impl(name, kernel, _KEY, with_keyset=True)
            _installed[namespace] = library


def _run(name: str, keys: Any, *values: Any, **named: Any) -> Any:
    """Run an operator of ``c10d`` by a method of its group, or by torch's kernel if the group is not the engine's."""
    operator = getattr(torch.ops.c10d, name).default
    arguments = _arguments(operator, values, named)
    group = torch.distributed.ProcessGroup.unbox(arguments["process_group"])
    if not isinstance(group, ProcessGroup):
        return _pass_on(operator, keys, values, named)
    work = _CALLS[name](group, arguments)
    returns = operator._schema.returns
    if not returns:
        return None
    boxed = work.boxed()
    return boxed if len(returns) == 1 else (next(iter(arguments.values())), boxed)


def _run_functional(name: str, keys: Any, *values: Any, **named: Any) -> Any:
    """Run an operator of ``_c10d_functional`` by methods of its group, or by torch's kernel."""
    operator = getattr(torch.ops._c10d_functional, name).default
    arguments = _arguments(operator, values, named)
    group = arguments["group_name"]
    if isinstance(group, str):
        group = _bindings._resolve_process_group(group)
    tensors = arguments["tensors"] if "tensors" in arguments else [arguments["input"]]
    if not isinstance(group, ProcessGroup) or any(tensor.is_meta for tensor in tensors):
        return _pass_on(operator, keys, values, named)
    return _FUNCTIONAL[name](group, arguments)


def _arguments(operator: Any, values: tuple[Any, ...], named: Arguments) -> dict[str, Any]:
    """Return the arguments of a call by their names, with the defaults of those that were not passed."""
    schema = operator._schema
    arguments = {argument.name: argument.default_value for argument in schema.arguments}
    arguments.update(zip(arguments, values, strict=False))
    arguments.update(named)
    return arguments


def _pass_on(operator: Any, keys: Any, values: tuple[Any, ...], named: Arguments) -> Any:
    """Run torch's own kernel, which may call operators whose kernels have the same key."""
    after = torch._C._dispatch_keyset_full_after(getattr(torch._C.DispatchKey, _KEY))
    return operator.redispatch(keys & after, *values, **named)
