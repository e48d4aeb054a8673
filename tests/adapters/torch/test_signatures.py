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
    "all_gather_into_tensor": "(output_tensor, input_tensor, group=None, async_op=False)",
    "all_gather_single": "(output_tensor, input_tensor, group=None, async_op=False)",
    "all_reduce": f"(tensor, {SUM}, group=None, async_op=False)",
    "all_to_all": "(output_tensor_list, input_tensor_list, group=None, async_op=False)",
    "all_to_all_single": "(output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False)",
    "barrier": "(group=None, async_op=False, device_ids=None, timeout=None)",
    "broadcast": "(tensor, src=None, group=None, async_op=False, group_src=None)",
    "destroy_process_group": "(group=None)",
    "gather": "(tensor, gather_list=None, dst=None, group=None, async_op=False, group_dst=None)",
    "get_backend": "(group=None)",
    "get_global_rank": "(group, group_rank)",
    "get_group_rank": "(group, global_rank)",
    "get_process_group_ranks": "(group)",
    "get_rank": "(group=None)",
    "get_world_size": "(group=None)",
    "init_process_group": "(backend=None, init_method=None, timeout=None, world_size=-1, rank=-1, store=None, "
    "group_name='', pg_options=None, device_id=None, _ranks=None)",
    "irecv": "(tensor, src=None, group=None, tag=0, group_src=None)",
    "is_available": "()",
    "is_initialized": "()",
    "isend": "(tensor, dst=None, group=None, tag=0, group_dst=None)",
    "new_group": "(ranks=None, timeout=None, backend=None, pg_options=None, use_local_synchronization=False, "
    "group_desc=None, device_id=None, sort_ranks=True)",
    "recv": "(tensor, src=None, group=None, tag=0, group_src=None)",
    "reduce": f"(tensor, dst=None, {SUM}, group=None, async_op=False, group_dst=None)",
    "reduce_scatter": f"(output, input_list, {SUM}, group=None, async_op=False)",
    "reduce_scatter_single": f"(output, input, {SUM}, group=None, async_op=False)",
    "reduce_scatter_tensor": f"(output, input, {SUM}, group=None, async_op=False)",
    "scatter": "(tensor, scatter_list=None, src=None, group=None, async_op=False, group_src=None)",
    "send": "(tensor, dst=None, group=None, tag=0, group_dst=None)",
}


def bare(function: Callable[..., Any]) -> str:
    """A signature without annotations."""
    signature = inspect.signature(function)
    plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
    return str(inspect.Signature(plain))


@pytest.mark.parametrize("name", SIGNATURES)
def test_every_signature_is_torchs(name: str) -> None:
    assert bare(getattr(dist, name)) == SIGNATURES[name]


@pytest.mark.skipif(not torch.__version__.startswith("2.13."), reason="the table is torch 2.13's")
@pytest.mark.parametrize("name", SIGNATURES)
def test_the_table_is_torchs(name: str) -> None:
    assert bare(getattr(torch.distributed, name)) == SIGNATURES[name]


def test_every_function_that_is_offered_is_in_the_table() -> None:
    functions = {name for name in dist.__all__ if inspect.isfunction(getattr(dist, name))}
    assert functions == set(SIGNATURES)


@pytest.mark.parametrize("name", ["ReduceOp", "Backend", "TCPStore", "FileStore", "is_nccl_available"])
def test_names_that_move_no_data_are_torchs_own(name: str) -> None:
    assert getattr(dist, name) is getattr(torch.distributed, name)
    assert name in dir(dist)


@pytest.mark.parametrize("name", ["all_gather_object", "monitored_barrier", "split_group", "P2POp", "nothing"])
def test_a_name_that_is_not_covered_is_an_error_that_says_what_is(name: str) -> None:
    with pytest.raises(AttributeError, match=rf"no attribute '{name}'.*collshim covers.*all_to_all") as caught:
        getattr(dist, name)
    assert isinstance(caught.value, collshim.CollshimError)


def test_everything_else_of_torch_is_torchs() -> None:
    assert collshim.torch.Tensor is torch.Tensor
    assert collshim.torch.nn is torch.nn
    assert collshim.torch.distributed is dist
    assert {"Tensor", "distributed"} <= set(dir(collshim.torch))
    with pytest.raises(AttributeError, match="has no attribute 'nothing_of_that_name'"):
        collshim.torch.nothing_of_that_name  # noqa: B018
