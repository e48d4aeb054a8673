"""Ranks that are processes: started by collshim or by their own launcher, connected by a ``Server`` or by rank 0."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any
from xmlrpc.client import ServerProxy

import pytest
import torch

import collshim
import collshim.megengine as mge
from collshim.megengine.autodiff import GradManager
from collshim.megengine.functional import distributed as F
from tests.robustness.scripts import Script, await_ends, scripts

pytestmark = pytest.mark.processes

dist = mge.distributed


def ring(count: int) -> Any:
    world = collshim.current()
    dist.init_process_group("localhost", 23456, world.size, world.rank, world.rank)
    x = torch.full((count,), 1.0)
    with GradManager().attach(x) as manager:
        F.remote_send(x, (world.rank + 1) % world.size)
        manager.backward(F.remote_recv((world.rank - 1) % world.size) * (world.rank + 5))
    return None if x.grad is None else x.grad.unique().tolist()


def test_send_does_not_wait_and_gets_its_gradient() -> None:
    with collshim.options(timeout=20):
        assert collshim.launch(ring, 2, args=(300_000,), ranks="processes", timeout=200) == [[6], [5]]


SCRIPT = """
import json, sys
import torch
import collshim.megengine.distributed as dist
from collshim.megengine.functional import distributed as F

port, size, rank = map(int, sys.argv[1:])
dist.init_process_group("localhost", port, size, rank, rank)
told = {"sum": F.all_reduce_sum(torch.tensor([rank + 1.0])).tolist()}
client = dist.get_client()
if rank == 0:
    told["set"] = client.user_set("key", (1, "a", None))
told["get"] = client.user_get("key")
client.group_barrier("all have read", size)
if rank == 1:
    told["pop"] = client.user_pop("key")
for turn in range(2):
    told[f"broadcast {turn}"] = client.bcast_val({"a": turn} if rank == 0 else None, "broadcast", size)
if rank == 0:
    client.set_is_grad("x", True)
    client.set_remote_tracer("x", ["grad_0"])
else:
    told["checked"] = [client.check_is_grad("x"), client.check_remote_tracer("x")]
told["ports"] = [dist.get_py_server_addr()[1] == port, dist.get_mm_server_addr()[1] == client.get_mm_server_port()]
dist.group_barrier()
client.group_barrier("all are done", size)
print(json.dumps(told))
"""


@pytest.mark.parametrize("served", [True, False], ids=["at a Server", "at rank 0"])
def test_processes_meet_at_an_address_and_share_a_store(served: bool, free_port: int) -> None:
    server = dist.Server() if served else None
    port = free_port if server is None else server.py_server_port
    with scripts([Script(SCRIPT, port, 2, rank) for rank in range(2)]) as processes:
        found = await_ends(processes)
    assert [seen.code for seen in found] == [0, 0], found
    both = {"sum": [3], "get": [1, "a", None], "ports": [True, True]}
    first, second = ({"broadcast 0": None, "broadcast 1": None}, {"broadcast 0": {"a": 0}, "broadcast 1": {"a": 1}})
    assert json.loads(found[0].out) == {**both, **first, "set": True}
    assert json.loads(found[1].out) == {**both, **second, "pop": [1, "a", None], "checked": [True, ["grad_0"]]}


def test_processes_that_a_launched_program_starts_meet(free_port: int) -> None:
    alone = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1", "RANK_ID": "0"}
    with scripts([Script(SCRIPT, free_port, 2, rank, **alone) for rank in range(2)]) as processes:
        found = await_ends(processes)
    assert [seen.code for seen in found] == [0, 0], found
    assert [json.loads(seen.out)["sum"] for seen in found] == [[3], [3]]


JOIN = """
import sys
import collshim.megengine.distributed as dist
dist.init_process_group("localhost", 1, int(sys.argv[1]), int(sys.argv[2]), 0)
"""


@pytest.mark.parametrize(("size", "rank"), [(4, 0), (2, 1)])
def test_arguments_contradicting_the_launcher_are_refused(size: int, rank: int, free_port: int) -> None:
    environment = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": str(free_port)}
    with scripts([Script(JOIN, size, rank, **environment)]) as (script,):
        seen = script.ended()
    assert seen.code == 1
    assert "WorldError" in seen.errors


def test_client_without_a_server_times_out(free_port: int) -> None:
    with collshim.options(timeout=0.2), pytest.raises(collshim.PeerError, match="no megengine Server listens"):
        dist.Client("localhost", free_port)


def test_wait_for_a_value_times_out() -> None:
    server = dist.Server()
    with collshim.options(timeout=0.2), pytest.raises(collshim.DeadlineError, match="nobody set a value"):
        dist.Client("localhost", server.py_server_port).user_get("key")


def test_server_ends_with_its_object() -> None:
    server = dist.Server()
    port = server.py_server_port
    assert dist.Client("localhost", port).get_mm_server_port() == server.mm_server_port
    del server
    with collshim.options(timeout=0.2), pytest.raises(collshim.PeerError):
        dist.Client("localhost", port)


def _answers(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), timeout=5).close()
    except OSError:
        return False
    return True


NET = Path("/proc/sys/net/ipv4")  # Linux, on which every address 127.x.y.z is loopback


@pytest.mark.skipif(not NET.exists(), reason="the system has one loopback address")
@pytest.mark.parametrize(("master_ip", "other"), [(None, "127.0.0.2"), ("127.0.0.2", "127.0.0.1")])
def test_server_listens_at_one_address_only(master_ip: str | None, other: str) -> None:
    server = dist.Server() if master_ip is None else dist.Server._at(master_ip, 0)
    own = master_ip or "127.0.0.1"
    assert server.mm_server_port == server.py_server_port
    assert [_answers(address, server.py_server_port) for address in (own, other)] == [True, False]


@pytest.mark.skipif(not NET.exists(), reason="the system has one loopback address")
def test_store_of_a_server_listens_on_loopback_only() -> None:
    server = dist.Server()
    with ServerProxy(f"http://127.0.0.1:{server.py_server_port}") as table:
        port = table.rendezvous("1")
    assert isinstance(port, int)
    assert [_answers(address, port) for address in ("127.0.0.1", "127.0.0.2")] == [True, False]
