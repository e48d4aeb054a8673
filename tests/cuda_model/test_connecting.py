"""NCCL does not connect the ranks, though all have arrived: the deadline holds, and nothing waits for it later."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

import collshim
import collshim.torch.distributed as dist
from collshim import Communicator, Recv, Send
from tests.cuda_model import kernels, model
from tests.cuda_model.hardware import require_model
from tests.cuda_model.ranks import Setting, among_gpus, ones, values
from tests.engine.worlds import attempt

require_model()

SECONDS, LONG = 2.0, 12.0
BRIEF = Setting(wait=SECONDS, rests=False)


def of_torch(comm: Communicator) -> None:
    dist.init_process_group("nccl", device_id=torch.device("cuda", comm.rank))
    dist.all_reduce(ones())


def in_a_part(comm: Communicator) -> None:
    part = comm.subgroup([1, 0])
    assert part is not None
    part.all_gather(ones()).wait()


def in_a_batch(comm: Communicator) -> None:
    peer = 1 - comm.rank
    for work in comm.batch([Send(ones(), peer), Recv(peer, like=ones())]):
        work.wait()


CALLS: dict[str, Callable[[Communicator], Any]] = {
    "a collective": lambda comm: comm.all_reduce(ones()).wait(),
    "one of unequal parts": lambda comm: comm.all_to_all([ones(), ones()[:3]], discovers=True).wait(),
    "a coalesced one": lambda comm: comm.all_reduce_coalesced([ones(), ones()]).wait(),
    "a message": lambda comm: (comm.send(ones(), 1) if comm.rank == 0 else comm.recv(0, like=ones())).wait(),
    "a batch": in_a_batch,
    "a group's": in_a_part,
    "torch's": of_torch,
}


def stuck(comm: Communicator, name: str) -> Any:
    began = time.monotonic()
    found = attempt(CALLS[name], comm)
    return time.monotonic() - began, found.raised[:1], found.text


@pytest.mark.parametrize("name", CALLS)
def test_first_call_times_out(name: str) -> None:
    began = time.monotonic()
    with model.setting("init_held", 1):
        found = values(among_gpus(stuck, 2, name, setting=BRIEF))
    assert time.monotonic() - began < LONG  # including the end of the world
    for took, raised, text in found:  # the text is that of the rank that noticed first
        assert took < LONG
        assert raised == ("DeadlineError",), text
        assert "NCCL did not connect the ranks, the deadline of 2 s passed" in text
        assert "on rank 0: NCCL" in text or "rank 0 waits in" in text
        assert "on rank 1: NCCL" in text or "rank 1 waits in" in text


def test_late_communicator_is_aborted() -> None:
    with model.setting("init_held", 1):
        values(among_gpus(stuck, 2, "a collective", setting=BRIEF))
        before = model.count("aborts")
    for thread in threading.enumerate():
        if thread.name == "collshim-connecting":
            thread.join(LONG)
    assert model.count("aborts") == before + 2


def ended(comm: Communicator) -> list[Any]:
    """Make a call on the CPU, and the close, of an ended group."""
    attempt(lambda: comm.all_reduce(ones()).wait())
    return [attempt(comm.barrier).raised[0], attempt(comm.close).raised]


def test_group_ends_and_closes_at_once() -> None:
    with model.setting("init_held", 1):
        assert values(among_gpus(ended, 2, setting=BRIEF)) == [["BrokenCommunicatorError", ()]] * 2


def unconnected(comm: Communicator) -> Any:
    """Rank 1 leaves while NCCL connects it."""
    if comm.rank == 1:
        leave = threading.Timer(SECONDS / 2, comm.announce_leaving, ["has left the world"])
        leave.start()
    return attempt(lambda: comm.all_reduce(ones()).wait()).text


def test_rank_that_leaves_while_connecting_is_named() -> None:
    with model.setting("init_held", 1):
        found = values(among_gpus(unconnected, 2, setting=Setting(wait=20.0, rests=False)))
    assert "NCCL did not connect the ranks, a rank has left: rank 1 has left the world" in found[0]


def interrupted() -> Any:
    """Interrupt rank 0 by Ctrl-C in a separate process, in which the model's NCCL finds no other rank."""
    model.set_always("devices", 2)
    kernels.install()
    comm = collshim.current().communicator
    torch.cuda.set_device(comm.rank)
    if comm.rank == 0:
        threading.Timer(1.0, os.kill, [os.getpid(), signal.SIGINT]).start()
    began = time.monotonic()
    try:
        comm.all_reduce(ones()).wait()
    except (KeyboardInterrupt, collshim.CommunicationError) as error:
        return time.monotonic() - began < LONG, type(error).__name__, str(error)
    return None


def test_ctrl_c_interrupts_and_peers_learn() -> None:
    with collshim.options(timeout=20.0):
        first, second = collshim.launch(interrupted, 2, ranks="processes", timeout=200)
    assert first[:2] == (True, "KeyboardInterrupt")
    assert second[:2] == (True, "PeerError")
    assert "rank 0 was interrupted before NCCL had connected it" in second[2]


SCRIPT = """
import atexit, torch, collshim
from tests.cuda_model import kernels, model
from tests.cuda_model.ranks import ones
model.set_always("devices", 2)
kernels.install()
atexit.register(model.stop)
comm = collshim.current().communicator
torch.cuda.set_device(comm.rank)
try:
    comm.all_reduce(ones()).wait()
except collshim.DeadlineError:
    print("told")
"""


def test_process_exits_although_its_thread_does_not(tmp_path: Any) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    surroundings = {**os.environ, "PYTHONPATH": os.getcwd(), "COLLSHIM_TIMEOUT": "8"}
    command = [sys.executable, "-m", "collshim", "run", "-n", "2", str(script)]
    done = subprocess.run(command, env=surroundings, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("told") == 2
