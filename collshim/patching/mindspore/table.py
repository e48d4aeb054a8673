"""The names replaced in the real MindSpore; a version that lacks some of them is refused, and the error names them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

from collshim.errors import ArgumentError, also
from collshim.patching.mindspore.context import Context, no_graphs
from collshim.patching.mindspore.functional import Functional
from collshim.patching.mindspore.kernels import Kernels
from collshim.patching.mindspore.named_groups import NamedGroups
from collshim.patching.mindspore.primitives import Primitives
from collshim.patching.mindspore.tensors import Tensors
from collshim.patching.replacing import Foreign, Replacing

MADE_FOR = "2.10.0"
KERNELS = "mindspore.ops.auto_generate.gen_ops_prim"
_PRIMITIVES = "mindspore.ops.operations.comm_ops"
_HELPER = "mindspore.communication._comm_helper"
_MANAGEMENT = "mindspore.communication.management"
_FUNCTIONS = "mindspore.ops.function.comm_func"
_DISTRIBUTED = "mindspore.mint.distributed.distributed"
_COMM_FUNC = "mindspore.communication.comm_func"
_PARSER = "mindspore.graph._parse"

KERNEL_METHODS = {
    "InnerCommAllReduce": "inner_all_reduce",
    "InnerCommAllGather": "inner_all_gather",
    "InnerCommReduceScatter": "inner_reduce_scatter",
    "InnerCommAllToAllV": "inner_all_to_all_v",
    "InnerCommIsend": "inner_isend",
    "InnerCommIrecv": "inner_irecv",
    "DistCommAllReduce": "dist_all_reduce",
    "DistCommReduce": "dist_reduce",
    "DistCommBroadcast": "dist_broadcast",
    "DistCommAllGather": "dist_all_gather",
    "DistCommAllGatherIntoTensor": "dist_all_gather_into_tensor",
    "DistCommAllGatherIntoTensorUneven": "dist_all_gather_into_tensor_uneven",
    "DistCommReduceScatter": "dist_reduce_scatter",
    "DistCommReduceScatterTensor": "dist_reduce_scatter_tensor",
    "DistCommReduceScatterTensorUneven": "dist_reduce_scatter_tensor_uneven",
    "DistCommScatter": "dist_scatter",
    "DistCommScatterTensor": "dist_scatter_tensor",
    "DistCommGather": "dist_gather",
    "DistCommGatherIntoTensor": "dist_gather_into_tensor",
    "DistCommAllToAllV": "dist_all_to_all_v",
    "DistCommAllToAllVSingle": "dist_all_to_all_v_single",
    "DistCommAllToAllVC": "dist_all_to_all_v_c",
    "DistCommBarrier": "dist_barrier",
    "DistCommIsend": "dist_isend",
    "DistCommIrecv": "dist_irecv",
    "DistCommBatchIsendIrecv": "dist_batch",
}
"""The classes whose instances MindSpore's functions call, each with the method of ``Kernels`` that replaces it."""

PRIMITIVE_METHODS = {
    "AllReduce": "all_reduce",
    "AllGather": "all_gather",
    "ReduceScatter": "reduce_scatter",
    "Broadcast": "broadcast",
    "Reduce": "reduce",
    "CollectiveGather": "collective_gather",
    "CollectiveScatter": "collective_scatter",
    "AlltoAll": "all_to_all",
    "AlltoAllV": "all_to_all_v",
    "AlltoAllVC": "all_to_all_v_c",
    "AllGatherV": "all_gather_v",
    "ReduceScatterV": "reduce_scatter_v",
    "Barrier": "barrier",
    "Send": "send",
    "Receive": "receive",
    "BatchISendIRecv": "batch",
    "NeighborExchange": "neighbor_exchange",
    "NeighborExchangeV2": "neighbor_exchange_v2",
}
"""MindSpore's operators, each with the method of ``Primitives`` that replaces it."""

NAMES: dict[str, tuple[str, ...]] = {
    _HELPER: ("CollectiveManager", "_set_elegant_exit_handle"),
    _FUNCTIONS: ("CollectiveManager", "_finalize_collective"),
    _DISTRIBUTED: ("_finalize_collective",),
    _MANAGEMENT: (
        *("context", "init", "_init_with_store", "_check_hccl", "_check_parallel_envs", "_set_elegant_exit_handle"),
        *("init_cluster", "init_hccl", "_init_cluster_with_store", "_init_hccl_with_store", "finalize_hccl"),
        "is_initialized",
    ),
    "mindspore.context": ("set_context",),
    "mindspore.device_manager": ("set_device",),
    _COMM_FUNC: ("get_group_rank_from_world_rank",),
    _PARSER: ("get_obj_type",),
    "mindspore.common.tensor": ("Tensor.asnumpy",),
    "mindspore.nn.wrap.grad_reducer": ("DistributedGradReducer.construct",),
    "mindspore.parallel._cell_wrapper": ("AllGatherCell.construct",),
    KERNELS: tuple(f"{name}.__call__" for name in KERNEL_METHODS),
    _PRIMITIVES: tuple(f"{name}.__call__" for name in PRIMITIVE_METHODS),
}
"""The names replaced in each module; a name with a dot is an attribute of a class."""

_MISSING = ("_get_all_to_all_v_c_numel_list", "dist_comm_all_to_all_v_c_op")
"""Names that ``ops.communication.all_to_all_v_c`` reads but its module in 2.10.0 lacks; ``comm_func`` has them."""


def apply(patch: Replacing) -> None:
    """Replace everything in the table.

    Raises:
        ArgumentError: (an ImportError too) the installed MindSpore lacks some of the names.
    """
    _require_all()
    tensors, groups, context = Tensors(), NamedGroups(), Context()
    functional = Functional(tensors, groups)
    _replace_joining(patch, groups, context)
    kernels, primitives = Kernels(functional), Primitives(functional)
    for owner, name in _classes(KERNELS):
        patch.replace(owner, "__call__", _without_self(getattr(kernels, KERNEL_METHODS[name])))
    for owner, name in _classes(_PRIMITIVES):
        patch.replace(owner, "__call__", _with_self(getattr(primitives, PRIMITIVE_METHODS[name])))
    operators = [owner for path in (KERNELS, _PRIMITIVES) for owner, _ in _classes(path)]
    parser = importlib.import_module(_PARSER)
    patch.replace_everywhere(parser.get_obj_type, no_graphs(parser.get_obj_type, operators))
    patch.replace(tensors.tensor, "asnumpy", tensors.wrap_asnumpy(tensors.tensor.asnumpy))
    for path in ("mindspore.nn.wrap.grad_reducer", "mindspore.parallel._cell_wrapper"):
        for owner, _ in _classes(path):
            patch.replace(owner, "construct", owner.construct.__wrapped__)


def _replace_joining(patch: Replacing, groups: NamedGroups, context: Context) -> None:
    modules = {path: importlib.import_module(path) for path in NAMES}
    management, settings = modules[_MANAGEMENT], modules["mindspore.context"]
    for path in (_HELPER, _FUNCTIONS):
        patch.replace(modules[path], "CollectiveManager", groups)
    for path in (_DISTRIBUTED, _FUNCTIONS):
        patch.replace(modules[path], "_finalize_collective", groups.leave)
    for name in ("_check_hccl", "_check_parallel_envs", "_set_elegant_exit_handle", "finalize_hccl"):
        patch.replace(management, name, _nothing)
    for name in ("init_cluster", "init_hccl"):
        patch.replace(management, name, groups.join)
    for name in ("_init_cluster_with_store", "_init_hccl_with_store"):
        patch.replace(management, name, groups.join_with_store)
    patch.replace(management, "is_initialized", lambda target: False)
    patch.replace(management, "context", context)
    patch.replace_everywhere(management.init, context.init(management.init))
    patch.replace_everywhere(management._init_with_store, context.init_with_store(management._init_with_store))
    patch.replace_everywhere(settings.set_context, context.set_context(settings.set_context))
    for name in _MISSING:
        patch.replace(modules[_FUNCTIONS], name, getattr(modules[_COMM_FUNC], name))
    patch.replace(modules[_COMM_FUNC], "get_group_rank_from_world_rank", _with_default_group(management))
    manager = modules["mindspore.device_manager"]
    patch.replace_everywhere(manager.set_device, context.set_device(manager.set_device))


def _with_default_group(management: Foreign) -> Callable[[int, str], int]:
    """Return a function for a root's rank in a group that also accepts ``comm_func``'s default group with ``mccl``."""

    def group_rank(world_rank_id: int, group: str) -> int:
        return int(management.get_group_rank_from_world_rank(world_rank_id, management._get_group(group)))

    return group_rank


def _require_all() -> None:
    missing = [f"{path}.{name}" for path, names in NAMES.items() for name in names if not _exists(path, name)]
    if missing:
        version = importlib.import_module("mindspore").__version__
        lacking = ", ".join(missing)
        text = f"patch: mindspore {version} lacks {lacking}, which {MADE_FOR} has: install mindspore=={MADE_FOR}"
        raise also(ArgumentError, ImportError)(text)


def _exists(path: str, name: str) -> bool:
    try:
        found: Any = importlib.import_module(path)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        return False
    return True


def _classes(path: str) -> Iterator[tuple[Foreign, str]]:
    module = importlib.import_module(path)
    for name in NAMES[path]:
        owner = name.partition(".")[0]
        yield getattr(module, owner), owner


def _without_self(kernel: Callable[..., Foreign]) -> Callable[..., Foreign]:
    return lambda self, *args, **kwargs: kernel(*args, **kwargs)


def _with_self(operator: Callable[..., Foreign]) -> Callable[..., Foreign]:
    return lambda self, *args: operator(self, *args)


def _nothing(*arguments: Foreign) -> None:
    """Do nothing: the replaced function is about another backend."""
