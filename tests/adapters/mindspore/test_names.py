"""MindSpore's names: one object by every path."""

from __future__ import annotations

from typing import Any

import pytest

import collshim.mindspore as ms
from collshim.mindspore.communication import management

pytestmark = pytest.mark.unranked

WITHOUT_PARAMETERS = ("HCCL_WORLD_COMM_GROUP", "MCCL_WORLD_COMM_GROUP", "NCCL_WORLD_COMM_GROUP", "GlobalComm")


@pytest.mark.parametrize("name", WITHOUT_PARAMETERS)
def test_names_other_than_functions_exist(name: str) -> None:
    assert getattr(ms.communication, name) is getattr(management, name)


@pytest.mark.parametrize("name", ms.ops.operations.comm_ops.__all__)
def test_primitive_is_the_same_by_every_path(name: str) -> None:
    primitive = getattr(ms.ops, name)
    assert primitive is getattr(ms.ops.operations, name) is getattr(ms.ops.operations.comm_ops, name)


@pytest.mark.parametrize("name", [name for name in ms.mint.distributed.__all__ if name != "distributed"])
def test_mint_function_is_the_same_by_both_paths(name: str) -> None:
    assert getattr(ms.mint.distributed, name) is getattr(ms.mint.distributed.distributed, name)
    assert hasattr(ms.ops.communication, name)


@pytest.mark.parametrize("name", ms.train.__all__)
def test_names_of_training_are_also_in_the_package(name: str) -> None:
    assert getattr(ms, name) is getattr(ms.train, name)


@pytest.mark.parametrize(
    ("primitive", "text"),
    [
        (ms.ops.AllReduce(), "op=sum, group=hccl_world_group, fusion=0, index=0, no_eliminate=True"),
        (ms.ops.AllGather(), "group=hccl_world_group, rank_size=1, fusion=0, mean_flag=False, no_eliminate=True"),
        (ms.ops.Reduce(0), "dest_rank=0, op=sum, group=hccl_world_group"),
        (
            ms.ops.Send(1, 0),
            "sr_tag=1, dest_rank=0, group=hccl_world_group, group_back=hccl_world_group, no_eliminate=True",
        ),
        (ms.ops.CollectiveScatter(), "src_rank=0, group=hccl_world_group, rank_id=0, rank_size=1"),
    ],
)
def test_primitives_have_the_attributes_of_mindspore(primitive: Any, text: str) -> None:
    assert repr(primitive) == f"Prim[{primitive.name}]<{text}>"


def test_a_primitives_attributes_are_on_the_object() -> None:
    reduce: Any = ms.ops.AllReduce()
    assert (reduce.op, reduce.group, reduce.fusion) == ("sum", "hccl_world_group", 0)
    assert reduce.add_prim_attr("fusion", 2).get_attr_dict()["fusion"] == reduce.fusion == 2


@pytest.mark.parametrize("inputs", [(), (1, 2)])
def test_a_primitive_refuses_a_wrong_number_of_inputs(inputs: Any) -> None:
    with pytest.raises(
        ValueError, match=rf"primitive\[AllReduce\], the input number must be equal to 1, but got {len(inputs)}"
    ):
        ms.ops.AllReduce()(*inputs)


def test_settings_without_meaning_are_refused() -> None:
    with pytest.raises(ValueError, match="the keyword argument foo is not recognized"):
        ms.set_context(foo=1)
    with pytest.raises(ValueError, match="the argument foo is not recognized"):
        ms.get_context("foo")
    with pytest.raises(ValueError, match="'global_rank' must be in"):
        ms.set_auto_parallel_context(global_rank=5000)
