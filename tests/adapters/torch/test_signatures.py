"""collshim.torch.distributed: its names, and signatures as torch 2.13.0's."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch

import collshim
import collshim.torch
import collshim.torch.distributed as dist

SUM = "op=<RedOpType.SUM: 0>"
SIGNATURES = {
    "all_gather": "(tensor_list, tensor, group=None, async_op=False)",
    "all_gather_coalesced": "(output_tensor_lists, input_tensor_list, group=None, async_op=False)",
    "all_gather_into_tensor": "(output_tensor, input_tensor, group=None, async_op=False)",
    "all_gather_object": "(object_list, obj, group=None)",
    "all_gather_single": "(output_tensor, input_tensor, group=None, async_op=False)",
    "all_reduce": f"(tensor, {SUM}, group=None, async_op=False)",
    "all_reduce_coalesced": f"(tensors, {SUM}, group=None, async_op=False)",
    "all_to_all": "(output_tensor_list, input_tensor_list, group=None, async_op=False)",
    "all_to_all_single": "(output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False)",
    "barrier": "(group=None, async_op=False, device_ids=None, timeout=None)",
    "batch_isend_irecv": "(p2p_op_list)",
    "broadcast": "(tensor, src=None, group=None, async_op=False, group_src=None)",
    "broadcast_object_list": "(object_list, src=None, group=None, device=None, group_src=None)",
    "destroy_process_group": "(group=None)",
    "gather": "(tensor, gather_list=None, dst=None, group=None, async_op=False, group_dst=None)",
    "gather_object": "(obj, object_gather_list=None, dst=None, group=None, group_dst=None)",
    "get_backend": "(group=None)",
    "get_backend_config": "(group=None)",
    "get_global_rank": "(group, group_rank)",
    "get_group_rank": "(group, global_rank)",
    "get_node_local_rank": "(fallback_rank=None)",
    "get_pg_count": "()",
    "get_process_group_ranks": "(group)",
    "get_rank": "(group=None)",
    "get_world_size": "(group=None)",
    "init_process_group": "(backend=None, init_method=None, timeout=None, world_size=-1, rank=-1, store=None, "
    "group_name='', pg_options=None, device_id=None, _ranks=None)",
    "irecv": "(tensor, src=None, group=None, tag=0, group_src=None)",
    "is_available": "()",
    "is_initialized": "()",
    "isend": "(tensor, dst=None, group=None, tag=0, group_dst=None)",
    "monitored_barrier": "(group=None, timeout=None, wait_all_ranks=False)",
    "new_group": "(ranks=None, timeout=None, backend=None, pg_options=None, use_local_synchronization=False, "
    "group_desc=None, device_id=None, sort_ranks=True)",
    "new_subgroups": "(group_size=None, group=None, timeout=None, backend=None, pg_options=None, group_desc=None)",
    "new_subgroups_by_enumeration": "(ranks_per_subgroup_list, timeout=None, backend=None, pg_options=None, "
    "group_desc=None)",
    "recv": "(tensor, src=None, group=None, tag=0, group_src=None)",
    "recv_object_list": "(object_list, src=None, group=None, device=None, group_src=None, use_batch=False)",
    "reduce": f"(tensor, dst=None, {SUM}, group=None, async_op=False, group_dst=None)",
    "reduce_scatter": f"(output, input_list, {SUM}, group=None, async_op=False)",
    "reduce_scatter_single": f"(output, input, {SUM}, group=None, async_op=False)",
    "reduce_scatter_tensor": f"(output, input, {SUM}, group=None, async_op=False)",
    "scatter": "(tensor, scatter_list=None, src=None, group=None, async_op=False, group_src=None)",
    "scatter_object_list": "(scatter_object_output_list, scatter_object_input_list=None, src=None, group=None, "
    "group_src=None)",
    "send": "(tensor, dst=None, group=None, tag=0, group_dst=None)",
    "send_object_list": "(object_list, dst=None, group=None, device=None, group_dst=None, use_batch=False)",
    "split_group": "(parent_pg=None, split_ranks=None, timeout=None, pg_options=None, group_desc=None, backend=None)",
}

OF_OBJECTS = [name for name in SIGNATURES if "object" in name]

NEWER = {
    "gather_into_tensor": "(tensor, gather_tensor=None, dst=None, group=None, async_op=False, group_dst=None)",
    "gather_single": "(tensor, gather_tensor=None, dst=None, group=None, async_op=False, group_dst=None)",
    "get_backend_impl": "(group=None, device=None)",
    "set_timeout": "(timeout, group=None)",
}
"""Those of torch 2.15.0."""


def bare(function: Callable[..., Any]) -> str:
    """A signature without annotations."""
    signature = inspect.signature(function)
    plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
    return str(inspect.Signature(plain))


@pytest.mark.parametrize(("name", "signature"), (SIGNATURES | NEWER).items())
def test_every_signature_is_torchs(name: str, signature: str) -> None:
    if name in OF_OBJECTS and hasattr(torch.distributed, "gather_single"):  # torch 2.14 added a parameter
        signature = signature.removesuffix(")") + ", weights_only=False)"
    assert bare(getattr(dist, name)) == signature


@pytest.mark.skipif(not hasattr(torch.distributed, "gather_single"), reason="torch before 2.14")
@pytest.mark.parametrize("name", NEWER)
def test_the_newer_ones_are_torchs(name: str) -> None:
    assert bare(getattr(torch.distributed, name)) == NEWER[name]


@pytest.mark.skipif(not torch.__version__.startswith("2.13."), reason="the table is torch 2.13's")
@pytest.mark.parametrize("name", SIGNATURES)
def test_the_table_is_torchs(name: str) -> None:
    assert bare(getattr(torch.distributed, name)) == SIGNATURES[name]


def test_every_function_that_is_offered_is_in_the_table() -> None:
    functions = {name for name in dist.__all__ if inspect.isfunction(getattr(dist, name))}
    assert functions == {*SIGNATURES, *NEWER}


@pytest.mark.parametrize("name", ["_all_gather_base", "_reduce_scatter_base", "_coalescing_manager", "P2POp"])
@pytest.mark.skipif(not torch.__version__.startswith("2.13."), reason="the signatures are torch 2.13's")
def test_what_is_private_or_a_class_has_torchs_signature_too(name: str) -> None:
    assert bare(getattr(dist, name)) == bare(getattr(torch.distributed, name))


TORCHS_OWN = [
    "AllToAllOptions",
    "AllreduceCoalescedOptions",
    "AllreduceOptions",
    "Backend",
    "BackendConfig",
    "BarrierOptions",
    "BroadcastOptions",
    "BuiltinCommHookType",
    "DebugLevel",
    "DeviceMesh",
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "FileStore",
    "GatherOptions",
    "GradBucket",
    "GroupName",
    "HashStore",
    "Logger",
    "PrefixStore",
    "ProcessGroupGloo",
    "QueueEmptyError",
    "RankType",
    "ReduceOp",
    "ReduceOptions",
    "ReduceScatterOptions",
    "Reducer",
    "ScatterOptions",
    "Store",
    "TCPStore",
    "breakpoint",
    "default_pg_timeout",
    "get_debug_level",
    "get_default_backend_for_device",
    "init_device_mesh",
    "is_backend_available",
    "is_gloo_available",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    "record_comm",
    "reduce_op",
    "register_rendezvous_handler",
    "rendezvous",
    "set_debug_level",
    "set_debug_level_from_env",
    "shrink_group",
    "supports_complex",
]


def _public(module: Any) -> set[str]:
    """A module's names that are no modules: which of those there are depends on what was imported before."""
    named = {name for name in dir(module) if not name.startswith("_")}
    return {name for name in named if not inspect.ismodule(getattr(module, name))}


@pytest.mark.skipif(not torch.__version__.startswith("2.13."), reason="the names are torch 2.13's")
@pytest.mark.filterwarnings("ignore:`torch.distributed.reduce_op` is deprecated:FutureWarning")
def test_these_names_and_no_others_are_torchs_own() -> None:
    own = {name for name in _public(torch.distributed) if getattr(dist, name) is getattr(torch.distributed, name)}
    assert own - {"log", "timedelta"} == set(TORCHS_OWN)  # without what torch itself only uses


def test_every_name_of_torchs_is_there() -> None:
    assert set(dir(torch.distributed)) <= set(dir(dist))
    missing = "nothing_of_that_name"
    with pytest.raises(AttributeError, match=missing):
        getattr(dist, missing)


def test_everything_else_of_torch_is_torchs() -> None:
    assert collshim.torch.Tensor is torch.Tensor
    assert collshim.torch.nn is torch.nn
    assert collshim.torch.distributed is dist
    assert {"Tensor", "distributed"} <= set(dir(collshim.torch))
    with pytest.raises(AttributeError, match="has no attribute 'nothing_of_that_name'"):
        collshim.torch.nothing_of_that_name  # noqa: B018
