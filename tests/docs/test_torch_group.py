"""docs/torch-group.md has every method of torch's groups, and says what is true of ours."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch._C._distributed_c10d

from collshim.conformance.conventions.torch_group import methods
from collshim.torch.distributed.c10d.group import CollectiveGroup
from collshim.torch.distributed.c10d.torch_group import REFUSED

pytestmark = pytest.mark.unranked

CLASSES = ("ProcessGroup", "Backend", "ProcessGroupGloo", "ProcessGroupNCCL", "ProcessGroupNCCL2")
TYPES = {"BackendType", "CUSTOM", "Device", "GLOO", "MPI", "NCCL", "NCCLConfig", "Options", "UCC", "UNDEFINED", "XCCL"}


def _of_torch() -> set[str]:
    bindings: Any = torch._C._distributed_c10d
    names = {name for kind in CLASSES for name in dir(getattr(bindings, kind, object))}
    left = TYPES | set(dir(object)) | {"_Options", "__module__", "_pybind11_conduit_v1_"}
    return {name for name in names - left if not name.startswith("NCCL_")}


def test_table_has_every_name_of_torch() -> None:
    assert _of_torch() - methods().keys() == set()


def test_names_that_are_not_absent_exist() -> None:
    listed = methods()
    expected = {name for name in _of_torch() & listed.keys() if not listed[name][1].startswith("absent")}
    assert {name for name in expected if not hasattr(CollectiveGroup, name)} == set()


def test_absent_names_are_absent() -> None:
    listed = methods()
    absent = {name for name in listed if listed[name][1].startswith("absent")}
    assert {name for name in absent if hasattr(CollectiveGroup, name)} == set()


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_say_what_to_do_instead(name: str) -> None:
    with pytest.raises(RuntimeError, match=f"does not support {name}: {REFUSED[name]}"):
        getattr(CollectiveGroup, name)(object())
