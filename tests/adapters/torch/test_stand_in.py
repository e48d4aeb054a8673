"""``collshim.stand_in("torch")``: the groups that libraries make with torch's own functions are collshim's."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import torch
import torch.distributed
from torch.distributed import device_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore

import collshim
import collshim.torch.distributed as dist
from collshim.torch.distributed.c10d.group import CollectiveGroup

NAMES = ("init_process_group", "new_group", "get_backend")
OWN = [getattr(torch.distributed, name) for name in NAMES]


def library_makes(backend: str | None) -> tuple[bool, bool, str, str, float]:
    """Make the default group as a library does; return what the library and the program see of it."""
    before = dist.is_initialized()
    torch.distributed.init_process_group(backend)
    dist.all_reduce(total := torch.tensor(1.0 + dist.get_rank()))
    kind = type(torch.distributed.group.WORLD).__name__
    return before, dist.is_initialized(), kind, torch.distributed.get_backend(), total.item()


@pytest.mark.parametrize("backend", [None, "gloo", "cpu:gloo"])
def test_library_makes_a_default_group_of_collshim(backend: str | None) -> None:
    with collshim.stand_in("torch"):
        found = collshim.launch(library_makes, 2, args=(backend,))
    assert found == [(False, True, "CollectiveGroup", backend or "undefined", 3.0)] * 2


def library_adds() -> tuple[str, str, str, float]:
    """Make a group with a named backend, and sum on it with torch's own function."""
    torch.distributed.init_process_group("gloo")
    group: Any = torch.distributed.new_group([0, 1], backend="cpu:gloo")
    torch.distributed.all_reduce(total := torch.tensor(1.0 + dist.get_rank()), group=group)
    inherits: Any = torch.distributed.new_group([0, 1])
    names = torch.distributed.get_backend(group), torch.distributed.get_backend(inherits)
    return type(group).__name__, *names, total.item()


def test_library_adds_a_group_of_collshim() -> None:
    with collshim.stand_in("torch"):
        assert collshim.launch(library_adds, 2) == [("CollectiveGroup", "cpu:gloo", "gloo", 3.0)] * 2


def mesh() -> tuple[bool, list[int]]:
    """Make a mesh, which makes the default group."""
    found = device_mesh.init_device_mesh("cpu", (2,))
    return isinstance(torch.distributed.group.WORLD, CollectiveGroup), found.mesh.tolist()


def test_mesh_makes_a_default_group_of_collshim() -> None:
    with collshim.stand_in("torch"):
        assert collshim.launch(mesh, 2, ranks="processes") == [(True, [0, 1])] * 2


def library_sets_a_timeout() -> list[float | None]:
    """Set the timeouts of the default group and of another group as a library does; return both in seconds."""
    torch.distributed.init_process_group("gloo")
    group: Any = torch.distributed.new_group([0, 1])
    sets: Any = torch.distributed.distributed_c10d._set_pg_timeout
    sets(timedelta(seconds=7))
    sets(timedelta(seconds=8), group)
    whole: Any = torch.distributed.group.WORLD
    return [whole.deadline, group.deadline]


def test_library_sets_timeouts_of_groups_of_collshim() -> None:
    with collshim.stand_in("torch"):
        assert collshim.launch(library_sets_a_timeout, 2) == [[7.0, 8.0]] * 2


def test_other_backend_is_left_to_torch() -> None:
    with collshim.stand_in("torch"):
        store = FakeStore()
        torch.distributed.init_process_group("fake", store=store, rank=1, world_size=3)
        found = torch.distributed.get_backend()
        torch.distributed.destroy_process_group()
    assert found == "fake"


def test_end_of_the_block_restores_torchs_functions() -> None:
    with collshim.stand_in("torch"), collshim.stand_in("torch"):
        assert device_mesh.init_process_group is torch.distributed.init_process_group is not OWN[0]
    assert [getattr(torch.distributed, name) for name in NAMES] == OWN
    assert device_mesh.init_process_group is OWN[0]
