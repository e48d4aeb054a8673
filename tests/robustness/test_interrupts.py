"""Ctrl-C in a waiting rank: it ends at once by KeyboardInterrupt, the others learn it, nothing is left."""

from __future__ import annotations

import os
import re
import signal
import threading
from time import sleep

import pytest

import collshim
from collshim.launching.kinds import RANK_KINDS
from tests.robustness.scripts import INTERRUPTED, Script, await_ends, finish, group_is_gone, ranks, start_program

pytestmark = pytest.mark.processes

WAITS = """
import time, numpy as np, collshim
comm = collshim.current().communicator
comm.barrier().wait()
print("waits", flush=True)
if comm.rank == 2:
    time.sleep(1000)
try:
    comm.all_reduce(np.array(1)).wait(600)
except collshim.PeerError as error:
    print(error, flush=True)
"""
ALONE = """
import sys, torch, collshim
comm = collshim.current().communicator
comm.barrier().wait()
print("waits", flush=True)
if comm.rank == 1:
    sys.stdin.read()
else:
    {call}
"""
CALLS = {
    "a large send": "comm.send(torch.ones(10**6), 1).wait()",
    "a recv": "comm.recv(1, like=torch.ones(10**6)).wait()",
    "the making of a group": "comm.subgroup([0, 1])",
}
LAUNCHES = """
import sys, time, numpy as np, collshim
from tests.robustness.test_interrupts import waits
if __name__ == "__main__":
    collshim.launch(waits, 3, ranks={ranks!r})
"""


def waits() -> None:
    """Rank 1 stays away; the others wait for it."""
    import time

    from tests.engine.worlds import world

    comm = world()
    comm.barrier().wait()
    if comm.rank == 1:
        print("waits", flush=True)
        time.sleep(1000)
    comm.barrier().wait(600)


def test_interrupted_process_ends_and_others_learn() -> None:
    with ranks(WAITS, 3) as processes:
        assert [process.stdout.readline() for process in processes] == ["waits\n"] * 3
        sleep(0.5)  # from the output to the wait
        processes[1].send_signal(signal.SIGINT)
        told = processes[0].stdout.readline()
        interrupted = processes[1].ended()
    assert interrupted.code == INTERRUPTED, interrupted
    assert "KeyboardInterrupt" in interrupted.errors
    assert "rank 1 failed with KeyboardInterrupt" in told


@pytest.mark.parametrize("check", ["0", "1"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_interrupted_wait_for_a_peer_ends_cleanly(call: str, check: str) -> None:
    with ranks(ALONE.format(call=call), 2, COLLSHIM_CHECK=check) as processes:
        assert [process.stdout.readline() for process in processes] == ["waits\n"] * 2
        sleep(0.5)  # from the output to the wait
        processes[0].send_signal(signal.SIGINT)
        last = _last_line_of_the_traceback(processes[0])
        found = await_ends(processes[::-1])  # rank 1 first, which then continues: its input ends
    assert last.strip() == "KeyboardInterrupt"
    assert [seen.code for seen in found] == [0, INTERRUPTED], found


def _last_line_of_the_traceback(process: Script) -> str:
    """Return the error that ended it, which it prints while its peer is still away."""
    return next((line for line in process.stderr if line.startswith(("KeyboardInterrupt", "collshim."))), "nothing")


def test_interrupt_while_ranks_start_ends_those_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    start, ended = threading.Thread.start, list[str]()

    def interrupted(thread: threading.Thread) -> None:
        if thread.name == "rank 1 of 2":
            raise KeyboardInterrupt
        start(thread)

    def waits() -> None:
        try:
            collshim.current().communicator.barrier().wait()
        except collshim.CollshimError as error:
            ended.append(str(error))

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        collshim.launch(waits, 2, ranks="threads")
    assert len(ended) == 1
    notes: list[str] = getattr(caught.value, "__notes__", [])
    assert [note.split()[1] for note in notes] == ["0", "1"]


@pytest.mark.parametrize("kind", RANK_KINDS)
def test_interrupted_launch_ends_its_ranks(kind: str) -> None:
    process = start_program(LAUNCHES.format(ranks=kind))
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "waits\n"
        os.killpg(process.pid, signal.SIGINT)  # as a terminal sends it: to the program and all its children
        found = finish(process)
        assert found.code == -signal.SIGINT, found
        place = r"rank 1 .*test_interrupts\.py:\d+.* its last call was barrier\(\)"
        assert re.search(place, found.errors), found.errors
        assert group_is_gone(process.pid)
    finally:
        if not group_is_gone(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
