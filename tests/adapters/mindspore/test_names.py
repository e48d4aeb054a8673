"""MindSpore's names: one object by every path."""

from __future__ import annotations

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
