"""A member dies, stops, is late or lacks descriptors while a group is made: the others learn which, in time."""

from __future__ import annotations

import pytest

from tests.robustness.scripts import await_ends, ranks
from tests.robustness.told import SLACK, read_reports

TIMEOUT = 2.0
BEGINS = """
import os, signal, time, torch, collshim
from collshim.transports.processes import process_groups
from collshim.transports.rendezvous import world as rendezvous
from collshim.transports.shared_memory import meeting
from tests.robustness.told import tell
rendezvous.LEAVE_SECONDS = 0.5  # nobody knows that rank 2 will not come to take its leave
"""
STEPS = {
    "gloo": ("process_groups.ProcessGroups._gloo", "connect"),
    "shared_memory": ("meeting._reads_far", "say whether they share memory"),
}
"""A function that a rank calls between its arrival and the end of the group's making, and what it then did not do."""

FAULTS = {
    "dies": "{step} = lambda *arguments: os._exit(3)\n",
    "stops": "{step} = lambda *arguments: os.kill(os.getpid(), signal.SIGSTOP)\n",
}


def _fault(fault: str, transport: str) -> str:
    return FAULTS[fault].format(step=STEPS[transport][0])


OWN_GROUP = """
if os.environ["RANK"] == "2":
    {fault}
tell(lambda: collshim.current() and None)
"""
SUBGROUP = """
comm = collshim.current().communicator
comm.barrier().wait()
if comm.rank == 2:
    {fault}
tell(lambda: comm.subgroup([0, 1, 2]) and None)
tell(lambda: int(comm.subgroup([0, 1]).all_reduce(torch.tensor(1)).wait()))
"""
LATE = """
comm = collshim.current().communicator
comm.barrier().wait()
if comm.rank == 1:
    time.sleep(comm.timeout + 0.6)
def meets():
    failures = []
    while len(failures) < 5:
        try:
            group = comm.subgroup([0, 1])
        except collshim.DeadlineError as error:
            failures.append(str(error))
        else:
            return [len(failures), int(group.all_reduce(torch.tensor(comm.rank + 1)).wait())]
    return failures
tell(meets)
"""
SERVER_STOPS = """
if os.environ["RANK"] == "0":
    process_groups.ProcessGroups.meeting = lambda *arguments: os.kill(os.getpid(), signal.SIGSTOP)
tell(lambda: collshim.current() and None)
"""
FEW_DESCRIPTORS = """
import resource
comm = collshim.current().communicator
comm.barrier().wait()
if comm.rank == 2:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + {free}, before[1]))
    tell(lambda: comm.subgroup([0, 1, 2]) and None)
    resource.setrlimit(resource.RLIMIT_NOFILE, before)
tell(lambda: int(comm.subgroup([0, 1, 2]).all_reduce(torch.tensor(comm.rank)).wait()))
"""


@pytest.mark.parametrize("transport", STEPS)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("script", [OWN_GROUP, SUBGROUP], ids=["the world's own group", "a subgroup"])
def test_rank_failing_after_its_arrival_is_named(script: str, fault: str, transport: str) -> None:
    program = BEGINS + script.format(fault=_fault(fault, transport))
    with ranks(program, 3, COLLSHIM_TIMEOUT=str(TIMEOUT), COLLSHIM_TRANSPORT=transport) as processes:
        found = await_ends(processes[:2])
    is_known_to_end = fault == "dies" and script is SUBGROUP  # the ranks of a new world have no connections yet
    for seen in found:
        made = read_reports(seen.out)[0]
        assert made.kind in ("PeerError", "DeadlineError"), seen
        assert ": rank 2 " in made.text, made
        assert f"1 of 3 ranks did not {STEPS[transport][1]}" in made.text, made
        assert ("rank 2 has ended while it waited in making a group " in made.text) == is_known_to_end, made
        assert made.seconds < TIMEOUT + SLACK


GONE = """
comm = collshim.current().communicator
comm.barrier().wait()
if comm.rank == 2:
    os.kill(os.getpid(), signal.SIGKILL)
tell(lambda: comm.subgroup([0, 1, 2]) and None)
"""


def test_death_of_a_rank_before_it_arrives_ends_the_wait_for_it() -> None:
    with ranks(BEGINS + GONE, 3, COLLSHIM_TIMEOUT="50") as processes:  # nobody waits for that long
        found = await_ends(processes[:2])
    for seen in found:
        (made,) = read_reports(seen.out)
        assert made.kind == "PeerError", seen
        assert "rank 2 has ended: its process at " in made.text, made


STAYS_AWAY = """
import sys
rendezvous._WITHDRAWAL_SECONDS = 100.0
if os.environ["RANK"] == "2":
    rendezvous.ProcessWorld.agreed = lambda *arguments: os.kill(os.getpid(), signal.SIGSTOP)
tell(lambda: collshim.current() and None)
sys.stdout.flush()
if os.environ["RANK"] == "0":
    time.sleep(2.0)
os._exit(0)
"""


def test_rank_that_stays_away_delays_no_error() -> None:
    """The process that serves the store keeps it for the others, but tells its own program at the deadline."""
    with ranks(BEGINS + STAYS_AWAY, 3, COLLSHIM_TIMEOUT=str(TIMEOUT)) as processes:
        found = await_ends(processes[:2])
    for seen in found:
        (made,) = read_reports(seen.out)
        assert made.kind in ("PeerError", "DeadlineError"), seen
        assert "rank 2 " in made.text, made
        assert made.seconds < TIMEOUT + SLACK


def test_stopped_store_has_one_deadline_for_all_steps() -> None:
    seconds = 2.5 * SLACK
    with ranks(BEGINS + SERVER_STOPS, 3, COLLSHIM_TIMEOUT=str(seconds)) as processes:
        found = [process.ended(3 * seconds) for process in processes[1:]]
    for seen in found:
        (made,) = read_reports(seen.out)
        assert made.ours, seen
        assert "rank 0 " in made.text, made
        assert made.seconds < seconds + SLACK


@pytest.mark.parametrize("transport", STEPS)
def test_group_can_be_made_after_a_failed_one(transport: str) -> None:
    script = BEGINS + SUBGROUP.format(fault=_fault("dies", transport))
    with ranks(script, 3, COLLSHIM_TIMEOUT=str(TIMEOUT), COLLSHIM_TRANSPORT=transport) as processes:
        found = await_ends(processes[:2])
    assert [read_reports(seen.out)[1].value for seen in found] == [2, 2], found


def test_late_rank_meets_the_others_on_retry() -> None:
    with ranks(BEGINS + LATE, 2, COLLSHIM_TIMEOUT=str(TIMEOUT)) as processes:
        found = await_ends(processes)
    (early, early_total), (late, late_total) = [read_reports(seen.out)[0].value for seen in found]
    assert (early_total, late_total) == (3, 3)
    assert 1 <= early <= 3
    assert late <= 3


@pytest.mark.parametrize("free", [1, 4])
def test_too_few_descriptors_are_a_world_error(free: int) -> None:
    with ranks(BEGINS + FEW_DESCRIPTORS.format(free=free), 3, COLLSHIM_TIMEOUT="10") as processes:
        found = await_ends(processes)
    assert [seen.code for seen in found] == [0, 0, 0], found
    refused = read_reports(found[2].out)[0]
    assert refused.kind == "WorldError", refused
    assert "file descriptors are free, should be" in refused.text
    assert [read_reports(seen.out)[-1].value for seen in found] == [3, 3, 3], found
