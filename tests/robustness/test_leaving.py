"""A process that ends without destroying anything ends cleanly, and waiting ranks learn it."""

from __future__ import annotations

import pytest

from tests.robustness.scripts import Script, await_ends, ranks, scripts

ENDS = """
import numpy as np, collshim
comm = collshim.current().communicator
group = comm.subgroup([2, 1, 0])
total = comm.all_reduce(np.array(comm.rank + 1)).wait()
dropped = group.all_gather(np.arange(3.0))
print(total, flush=True)
"""
DROPS = """
import torch, collshim
comm = collshim.current().communicator
groups = [comm.subgroup([0, 1, 2]) for _ in range(6)]
for group in groups:
    group.all_reduce(torch.ones(2)).wait()
comm.barrier().wait()
del group, groups
"""
OUTLIVES = """
import torch, collshim.torch.distributed as dist
dist.init_process_group("gloo")
group = dist.new_group()
dist.all_reduce(torch.ones(2), group=group)
torch._C._distributed_c10d.kept = group, group.communicator  # an extension loses its names after all other modules
del group
dist.destroy_process_group()
"""
ENDS_EARLY = """
import numpy as np, collshim
comm = collshim.current().communicator
comm.all_reduce(np.array(1)).wait()
if comm.rank != 1:
    try:
        comm.all_reduce(np.array(2)).wait()
    except collshim.PeerError as error:
        print(error, flush=True)
"""
LEAVES_A_MESSAGE = """
import warnings, torch, collshim
warnings.simplefilter("error", ResourceWarning)
comm = collshim.current().communicator
if comm.rank == 0:
    comm.send(torch.ones(3), 1).wait()
comm.barrier().wait()
if CLOSES:
    collshim.close()
"""
CLOSES_A_GROUP_LAST = """
import collshim
from collshim.world import _Process
comm, told = collshim.current().communicator, []
shared = _Process.shared
tell, shared.client.tell = shared.client.tell, told.append
shared.left("first", 2)
comm.barrier().wait()
shared.leave("has ended")
shared.left("second", 2)
print(len(told))
"""
THREADS = """
import threading, collshim
from collshim.world import local_worlds, use
worlds = local_worlds(2)
def wait():
    with use(worlds[0]) as world:
        world.communicator.barrier().wait()
threading.Thread(target=wait, daemon=True).start()
print("ends")
"""
ENDS_WHILE_ANOTHER_THREAD_FREES = """
import threading, time
from collshim.transports.dropping import DROPPED, await_destructors, pause
begun = threading.Event()
def end():
    begun.set()
    time.sleep(0.3)
    print("freed", flush=True)
    pause(0)
    print("went on", flush=True)
DROPPED.start()
DROPPED.drop(end)
begun.wait()
await_destructors()
print("ended", flush=True)
DROPPED.drop(lambda: print("began", flush=True))
time.sleep(0.3)
"""


@pytest.mark.parametrize("transport", ["auto", "gloo"])
def test_group_that_outlives_its_modules_ends_quietly(transport: str) -> None:
    with ranks(OUTLIVES, 2, COLLSHIM_TRANSPORT=transport) as started:
        assert [(ended.code, ended.errors) for ended in await_ends(started)] == [(0, "")] * 2


def test_ranks_without_destroy_exit_silently_with_0() -> None:
    with ranks(ENDS, 3) as processes:
        found = await_ends(processes)
    assert [(seen.code, seen.out.strip()) for seen in found] == [(0, "6")] * 3, found
    assert not any("Traceback" in seen.errors or "terminate" in seen.errors for seen in found), found


def test_groups_dropped_last_do_not_abort() -> None:
    with ranks(DROPS, 3, PYTHONFAULTHANDLER="1") as processes:
        found = await_ends(processes)
    assert [seen.code for seen in found] == [0, 0, 0], found


def test_ranks_waiting_for_an_ended_one_learn() -> None:
    with ranks(ENDS_EARLY, 3) as processes:
        found = await_ends(processes)
    assert [seen.code for seen in found] == [0, 0, 0], found
    assert all("rank 1 has left the world" in found[rank].out for rank in (0, 2)), found


@pytest.mark.parametrize("closes", [False, True])
def test_unreceived_message_is_reported_and_all_is_closed(
    closes: bool,
) -> None:
    with ranks(LEAVES_A_MESSAGE.replace("CLOSES", str(closes)), 2) as processes:
        sender, receiver = await_ends(processes)
    assert sender == (0, "", ""), sender
    assert receiver.code == (1 if closes else 0), receiver
    assert "ResourceWarning: group all is closed: send(shape (3,), float32, to 1) at" in receiver.errors
    assert "of rank 0 was never received by rank 1" in receiver.errors


def test_rank_that_has_left_tells_the_store_no_more() -> None:
    with ranks(CLOSES_A_GROUP_LAST, 2) as processes:
        found = await_ends(processes)
    assert [(seen.code, seen.out) for seen in found] == [(0, "1\n")] * 2, found


def test_waiting_daemon_thread_does_not_block_exit() -> None:
    with scripts([Script(THREADS)]) as (script,):
        assert script.ended()[:2] == (0, "ends\n")


def test_end_waits_for_a_thread_that_frees_and_lets_no_other_begin() -> None:
    with scripts([Script(ENDS_WHILE_ANOTHER_THREAD_FREES)]) as (script,):
        found = script.ended()
    assert (found.code, found.out.split(), found.errors) == (0, ["freed", "ended"], "")
