"""Imports below collshim.torch: the adapter's modules if it has them, else torch's own."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed.fsdp
import torch.nn.functional

import collshim
import collshim.torch
import collshim.torch.distributed as dist
from collshim.torch.distributed import distributed_c10d

TORCHS = [
    "nn",
    "nn.functional",
    "utils.data",
    "distributed.fsdp",
    "distributed.device_mesh",
    "distributed.algorithms.ddp_comm_hooks.default_hooks",
    "distributed.checkpoint",
]


@pytest.mark.parametrize("path", TORCHS)
def test_missing_module_is_the_torch_object(path: str) -> None:
    theirs = importlib.import_module(f"torch.{path}")
    spec = theirs.__spec__
    assert importlib.import_module(f"collshim.torch.{path}") is theirs
    assert theirs.__spec__ is spec
    assert theirs.__name__ == f"torch.{path}"


@pytest.mark.parametrize("path", ["distributed", "distributed.groups", "distributed.nn", "distributed.nn.functional"])
def test_existing_module_is_the_adapter_module(path: str) -> None:
    found = importlib.import_module(f"collshim.torch.{path}")
    assert found.__name__ == f"collshim.torch.{path}"


def test_unknown_module_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"collshim\.torch\.nothing_of_that_name"):
        importlib.import_module("collshim.torch.nothing_of_that_name")


def test_submodules_are_attributes_of_their_parents() -> None:
    assert dist.fsdp is torch.distributed.fsdp
    assert collshim.torch.nn.functional is torch.nn.functional


@pytest.mark.parametrize(
    "name", ["all_reduce", "new_group", "get_rank", "P2POp", "ProcessGroup", "_coalescing_manager"]
)
def test_distributed_c10d_has_adapter_names(name: str) -> None:
    assert getattr(distributed_c10d, name) is getattr(dist, name)
    assert name in dir(distributed_c10d)


def test_distributed_c10d_has_other_torch_names() -> None:
    assert distributed_c10d.PrefixStore is torch.distributed.PrefixStore
    with pytest.raises(ValueError, match="has not been initialized"):
        distributed_c10d._get_default_group()


def test_fall_through_works_in_a_fresh_interpreter() -> None:
    script = "import collshim.torch.nn.functional as F, sys; assert F is sys.modules['torch.nn.functional']"
    place = str(Path(collshim.__file__).parents[1])
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {place!r}); {script}"]
    assert subprocess.run(command, capture_output=True, timeout=200, check=False).returncode == 0
