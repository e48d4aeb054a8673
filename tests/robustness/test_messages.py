"""A send or recv whose peer dies, leaves or stays away, or whose group has ended: reported as such, never by gloo."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import pytest

import collshim
from collshim.launching.kinds import RANK_KINDS
from tests.engine.worlds import Outcome, on_ranks
from tests.robustness.scenarios import messages
from tests.robustness.scripts import ranks

PROCESSES = ("processes", "unchecked")
TRANSPORTS = ("threads", *PROCESSES)
DIES = """
import os, signal, time, torch, collshim
comm = collshim.current().communicator
comm.barrier().wait()
if comm.rank == 1:
    comm.send(torch.ones(10**6), 0)
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(1)
from tests.robustness.scenarios.messages import told
for _ in range(2):
    print(told(lambda: comm.recv(1, like=torch.ones(10**6)).wait()), flush=True)
from collshim.transports.rendezvous import world as rendezvous
rendezvous.LEAVE_SECONDS = 0.5  # nobody knows that rank 1, who was killed, will not come to take its leave
"""
STORE_DIES = """
import os, time, torch, collshim
comm = collshim.current().communicator
received = comm.recv(0, like=torch.ones(3)) if comm.rank else None
comm.barrier().wait()
if received is None:
    time.sleep(0.3)
    os._exit(0)
while not received.done():
    time.sleep(0.01)
from tests.robustness.scenarios.messages import told
for call in (received.result, lambda: comm.send(torch.ones(3), 0).wait(), lambda: comm.subgroup([0, 1])):
    print(told(call), flush=True)
print(type(received.exception()).__name__, flush=True)
"""
STORE_DIES_BEFORE_A_SEND = """
import os, time, torch, collshim
comm = collshim.current().communicator
comm.barrier().wait()
if comm.rank == 0:
    time.sleep(0.3)
    os._exit(0)
time.sleep(1)
from tests.robustness.scenarios.messages import told
print(told(lambda: comm.send(torch.ones(3), 0).wait()), flush=True)
"""


FILLS_THE_PIPE_OF_A_DEAD_RANK = """
import os, signal, torch, collshim
import collshim.torch.distributed as dist
dist.init_process_group("gloo")
if dist.get_rank() == 1:
    dist.recv(torch.zeros(1024), 0)
    os.kill(os.getpid(), signal.SIGKILL)
from tests.robustness.scenarios.messages import told
print(told(lambda: [dist.send(torch.ones(1024), 1) for _ in range(200_000)]), flush=True)
from collshim.transports.rendezvous import world as rendezvous
rendezvous.LEAVE_SECONDS = 0.5  # as above
"""


TOO_LATE = [*product(RANK_KINDS, ("small", "large")), ("unchecked", "large")]
"""With the check off a small message travels like a large one."""


@cache
def _found(scenario: str, transport: str) -> list[Any]:
    return on_ranks(getattr(messages, scenario), 2, transport, wait=20.0, within=60)


@pytest.mark.parametrize("check", ["0", "1"])
def test_killed_sender_is_a_peer_error(check: str) -> None:
    with ranks(DIES, 2, COLLSHIM_CHECK=check) as processes:
        seen = processes[0].ended()
    assert seen.out.split() == ["PeerError", "BrokenCommunicatorError"], seen


def test_polled_recv_fails_when_the_store_process_dies() -> None:
    with ranks(STORE_DIES, 2) as processes:
        seen = processes[1].ended()
    assert seen.out.split() == ["PeerError", *["BrokenCommunicatorError"] * 2, "PeerError"], seen
    assert "Exception in thread" not in seen.errors


def test_small_send_fails_when_the_store_process_dies() -> None:
    with ranks(STORE_DIES_BEFORE_A_SEND, 2) as processes:
        seen = processes[1].ended()
    assert seen.out.split() == ["PeerError"], seen


def test_small_sends_to_a_dead_rank_are_a_peer_error() -> None:
    with ranks(FILLS_THE_PIPE_OF_A_DEAD_RANK, 2) as processes:
        seen = processes[0].ended()
    assert seen.out.split() == ["PeerError"], seen


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_large_send_to_a_returned_rank_fails_early(transport: str) -> None:
    found: Outcome = _found("sends_to_one_that_returns", transport)[0]
    assert found.raised[0] == "PeerError", found
    assert "rank 1 has returned from its function" in found.text


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_polled_recv_from_a_returned_rank_is_done(transport: str) -> None:
    found: Outcome = _found("polls_one_that_returns", transport)[0]
    assert found.raised[0] == "PeerError", found
    assert "rank 1 has returned from its function" in found.text


@pytest.mark.parametrize("transport", PROCESSES)
def test_large_message_of_a_returned_rank_arrives(transport: str) -> None:
    assert _found("receives_from_one_that_returned", transport)[0] == messages.LARGE


@pytest.mark.parametrize(("transport", "length"), TOO_LATE)
def test_message_after_the_receiver_gave_up_fails(transport: str, length: str) -> None:
    late: Outcome = _found(f"sends_a_{length}_one_too_late", transport)[1]
    assert "CommunicationError" in late.raised, late
    assert "the deadline passed" in late.text or "did not arrive" in late.text


@pytest.mark.parametrize("seconds", [1e10, 1e300, float("inf")])
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_distant_deadline_works(transport: str, seconds: float) -> None:
    assert on_ranks(messages.has_time, 2, transport, seconds, within=30) == [None, messages.LARGE]


@pytest.mark.parametrize("transport", PROCESSES)
def test_differently_ordered_members_are_named_by_world_rank(transport: str) -> None:
    with collshim.options(timeout=3.0, check=transport == "processes"):
        found = collshim.launch(messages.makes_a_group_in_two_orders, 2, ranks="processes", timeout=200)
    named = [f"1 of 2 ranks did not arrive within 3 s: rank {1 - rank} " in found[rank].text for rank in (0, 1)]
    left = [f"1 of 2 ranks did not arrive: rank {1 - rank} " in found[rank].text for rank in (0, 1)]
    assert all(at_the_deadline or before for at_the_deadline, before in zip(named, left, strict=True)), found
    assert any(named), found
