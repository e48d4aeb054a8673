"""init_process_group by every method, joining an existing world, and destroy_process_group."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

import collshim
import collshim.torch.distributed as dist
from collshim.world import peek
from tests.adapters.conftest import Refused
from tests.ports import free_port
from tests.robustness.scripts import Script, await_ends, scripts

pytestmark = pytest.mark.processes

SECONDS = 60


def test_only_queries_work_before_init(refused: Refused) -> None:
    def rank() -> Any:
        for call in (dist.get_rank, dist.get_world_size, dist.get_backend, dist.new_group, dist.barrier):
            refused(ValueError, call, "has not been initialized")
        refused(ValueError, lambda: dist.all_reduce(torch.zeros(1)), "has not been initialized")
        refused(AssertionError, dist.destroy_process_group, "Process group cannot be None")
        return dist.is_available(), dist.is_initialized(), dist.group.WORLD, dist.get_rank(-100)

    assert collshim.launch(rank, 1, timeout=SECONDS) == [(True, False, None, -1)]


def test_existing_world_is_joined_if_arguments_agree() -> None:
    def rank() -> Any:
        mine = collshim.current().rank
        dist.init_process_group("gloo", init_method="tcp://127.0.0.1:1", rank=mine, world_size=2)
        first = dist.get_rank(), dist.get_world_size(), dist.get_backend(), dist.is_initialized()
        dist.destroy_process_group()
        assert not dist.is_initialized()
        dist.init_process_group(timeout=timedelta(seconds=5))
        dist.all_reduce(tensor := torch.ones(1))
        return first, dist.get_backend(), tensor.item()

    assert collshim.launch(rank, 2, timeout=SECONDS) == [((r, 2, "gloo", True), "undefined", 2.0) for r in range(2)]


def test_contradiction_shows_both_values(refused: Refused) -> None:
    def rank() -> None:
        init = dist.init_process_group
        refused(ValueError, lambda: init(rank=5, world_size=2), "rank is 5 as an argument and [01] in")
        refused(ValueError, lambda: init(world_size=3), "world_size is 3 as an argument and 2 in")
        assert not dist.is_initialized()

    collshim.launch(rank, 2, timeout=SECONDS)


def test_arguments_override_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        assert (dist.get_rank(), dist.get_world_size()) == (0, 1)
    finally:
        dist.destroy_process_group()


def test_failed_init_leaves_nothing_behind(refused: Refused) -> None:
    place: Any = {"rank": 0, "world_size": 1}
    refused(
        TypeError, lambda: dist.init_process_group("gloo", store="x", **place), "incompatible constructor arguments"
    )
    assert not dist.is_initialized()
    dist.init_process_group("gloo", store=dist.HashStore(), **place)
    dist.destroy_process_group()


def test_init_is_undone_if_torch_refuses_its_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(torch.distributed.Backend._plugins, "COLLSHIM")
    place: Any = {"rank": 0, "world_size": 1}
    with pytest.raises((AssertionError, RuntimeError)):  # torch 2.14 and newer also look for the entry point
        dist.init_process_group("gloo", store=dist.HashStore(), **place)
    assert not dist.is_initialized()
    assert peek() is None


@pytest.mark.filterwarnings("ignore:Device capability of nope")
def test_invalid_init_arguments_are_refused(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    store = dist.HashStore()
    init = dist.init_process_group
    refused(AssertionError, lambda: init(init_method="env://", store=store), "both init_method and store")
    refused(AssertionError, lambda: init(store=store), "world_size must be positive")
    refused(AssertionError, lambda: init(store=store, world_size=1), "rank must be non-negative")
    refused(AssertionError, lambda: init("nope", store=store, rank=0, world_size=1), "Unknown backend type nope")
    refused(RuntimeError, lambda: init("mpi", store=store, rank=0, world_size=1), "gloo or nccl")
    refused(ValueError, lambda: init(3, store=store, rank=0, world_size=1), "string-ish")  # type: ignore[arg-type]
    refused(TypeError, lambda: init(timeout=3), "of type datetime.timedelta")  # type: ignore[arg-type]
    refused(ValueError, lambda: init("gloo"), "environment variable RANK expected, but not set")
    refused(ValueError, lambda: init("gloo", "tcp://127.0.0.1", rank=0, world_size=1), "port number missing")
    refused(ValueError, lambda: init("gloo", "tcp://127.0.0.1:1", world_size=1), "rank parameter missing")
    refused(RuntimeError, lambda: init("gloo", "carrier-pigeon://roof"), "No rendezvous handler")
    for name in ("ucc", "fake", "cpu:nope"):
        refused(AssertionError, partial(init, name, store=store, rank=0, world_size=1), "Unknown backend type")
    for name in ("cpu:gloo,cuda", "cpu:gloo:x", "cpu:gloo,cpu:gloo"):
        refused(ValueError, partial(init, name, store=store, rank=0, world_size=1), "device")
    refused(ValueError, lambda: init(device_id=torch.device("cpu")), "must be an accelerator with an index")
    assert not dist.is_initialized()


def test_backend_unknown_to_torch_warns_first() -> None:
    with pytest.warns(UserWarning, match="Device capability of nope unknown"), pytest.raises(AssertionError):
        dist.init_process_group("nope", store=dist.HashStore(), rank=0, world_size=1)


def test_second_init_is_an_error(refused: Refused) -> None:
    def rank() -> None:
        dist.init_process_group()
        refused(ValueError, dist.init_process_group, "initialize the default process group twice")

    collshim.launch(rank, 1, timeout=SECONDS)


def test_world_of_one_is_made_from_a_store(refused: Refused) -> None:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        dist.all_reduce(tensor := torch.ones(1))
        assert (tensor.item(), dist.get_rank(), dist.get_world_size()) == (1.0, 0, 1)
    finally:
        dist.destroy_process_group()
    assert not dist.is_initialized()
    refused(ValueError, dist.get_rank, "has not been initialized")


LEFT_ALONE = """
import os, sys, time
import torch
import collshim.torch.distributed as dist
rank, folder = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", store=dist.FileStore(f"{folder}/store", 2), rank=rank, world_size=2)
group = dist.new_group([0, 1])
dist.all_reduce(torch.ones(1), group=group)
awaited = [dist.irecv(torch.zeros(1), 1 - rank, group=group) for _ in range(3)]
time.sleep(0.05)
print("done", flush=True)
"""


@pytest.mark.timeout(110)
def test_process_can_exit_while_a_receive_is_pending(tmp_path: Path) -> None:
    for attempt in range(2):
        (tmp_path / str(attempt)).mkdir()
        assert _lines_of_two(LEFT_ALONE, tmp_path / str(attempt)) == [["done"]] * 2


RANK = """
import os, sys
from datetime import timedelta
import torch
import collshim.torch.distributed as dist
rank, folder, first, second = int(sys.argv[1]), *sys.argv[2:]
place = {"rank": rank, "world_size": 2}
methods = {
    "file": {"init_method": f"file://{folder}/file", **place},
    "store": {"store": dist.FileStore(f"{folder}/store", 2), **place},
    "tcp": {"init_method": f"tcp://127.0.0.1:{first}", **place},
    "env": {},
}
os.environ.update(RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=second)
for name, arguments in methods.items():
    dist.init_process_group("gloo", timeout=timedelta(seconds=40), **arguments)
    dist.all_reduce(tensor := torch.tensor([1.0 + dist.get_rank()]))
    group = dist.new_group([1])
    dist.barrier()
    print(name, dist.get_rank(), dist.get_world_size(), tensor.item(), dist.get_rank(group), flush=True)
    dist.destroy_process_group()
    assert not dist.is_initialized()
"""


@pytest.mark.timeout(110)
def test_processes_use_every_init_method_in_turn(tmp_path: Path) -> None:
    methods = ["file", "store", "tcp", "env"]
    assert _lines_of_two(RANK, tmp_path, free_port(), free_port()) == [
        [f"{name} {rank} 2 3.0 {rank - 1}" for name in methods] for rank in range(2)
    ]


def _lines_of_two(script: str, *arguments: object) -> list[list[str]]:
    """Return the output lines of two processes of a script that gets its rank; both must succeed."""
    with scripts([Script(script, rank, *arguments) for rank in range(2)]) as processes:
        found = await_ends(processes)
    assert [seen.code for seen in found] == [0, 0], found
    return [seen.out.splitlines() for seen in found]


def _gloo_twice() -> list[list[float]]:
    found = []
    for _ in range(2):
        dist.init_process_group("collshim")
        group = torch.distributed.new_group(backend="gloo")
        torch.distributed.all_reduce(total := torch.ones(2), group=group)
        found.append(total.tolist())
        dist.destroy_process_group()
    return found


def test_second_default_group_of_a_world_has_no_addresses_of_the_first() -> None:
    """torch's gloo leaves its addresses in the store."""
    assert collshim.launch(_gloo_twice, 2, ranks="processes", timeout=200) == [[[2.0, 2.0]] * 2] * 2
