"""The names of collshim.torch.distributed, and those that are torch's own."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch

import collshim
import collshim.torch
import collshim.torch.distributed as dist

pytestmark = pytest.mark.unranked

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

BACKENDS = ("mpi", "nccl", "ucc", "xccl")
"""Backends that a build of torch may have besides gloo; their classes are torch's own too."""


def _public(module: Any) -> set[str]:
    """Return a module's names other than modules, which depend on earlier imports."""
    named = {name for name in dir(module) if not name.startswith("_")}
    return {name for name in named if not inspect.ismodule(getattr(module, name))}


@pytest.mark.skipif(not torch.__version__.startswith("2.13."), reason="the names are torch 2.13's")
@pytest.mark.filterwarnings("ignore:`torch.distributed.reduce_op` is deprecated:FutureWarning")
def test_own_names_are_exactly_these() -> None:
    own = {name for name in _public(torch.distributed) if getattr(dist, name) is getattr(torch.distributed, name)}
    built = {f"ProcessGroup{name.upper()}" for name in BACKENDS if getattr(torch.distributed, f"is_{name}_available")()}
    assert own - {"log", "timedelta"} == built | set(TORCHS_OWN)  # without names that torch itself only uses


def test_every_torch_name_exists() -> None:
    assert set(dir(torch.distributed)) <= set(dir(dist))
    missing = "nothing_of_that_name"
    with pytest.raises(AttributeError, match=missing):
        getattr(dist, missing)


def test_other_torch_names_fall_through() -> None:
    assert collshim.torch.Tensor is torch.Tensor
    assert collshim.torch.nn is torch.nn
    assert collshim.torch.distributed is dist
    assert {"Tensor", "distributed"} <= set(dir(collshim.torch))
    with pytest.raises(AttributeError, match="has no attribute 'nothing_of_that_name'"):
        collshim.torch.nothing_of_that_name  # noqa: B018
