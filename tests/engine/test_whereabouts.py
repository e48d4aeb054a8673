"""What the error of a wait says about missing ranks, and which of them may still come."""

from __future__ import annotations

import gc
import sys
import threading
import time
from typing import Any

import pytest
import torch

import collshim
from collshim.calls.site import line_of
from collshim.world import use
from tests.engine.worlds import attempt, fresh, on_ranks, world

SHORT, LONG = 1.0, 30.0
"""Seconds of a deadline that should pass, and of one that should not."""

SLOW = 2.5
"""Seconds: longer than a rank waits between two checks of the others."""


def _away() -> str:
    """Rank 1 is elsewhere in its program when rank 0's deadline passes."""
    comm, control = fresh(), fresh()
    comm.all_reduce(torch.ones(3)).wait()
    if comm.rank == 1:
        time.sleep(SHORT + 2.0)
    text = attempt(comm.all_reduce(torch.ones(3)).wait, SHORT).text if comm.rank == 0 else ""
    control.barrier().wait(LONG)
    return text


def test_line_and_last_call_of_missing_rank_are_shown(checked: str) -> None:
    told = on_ranks(_away, 2, checked, wait=LONG)[0]
    assert "1 of 2 ranks did not arrive: rank 1 is in no collective: it runs test_whereabouts.py:" in told
    assert " in _away, its last call was all_reduce(shape (3,), float32, op sum) at test_whereabouts.py:" in told


def _closes() -> tuple[str, float]:
    comm, group = fresh(), world().subgroup([0, 1])
    assert group is not None
    group.barrier().wait()
    if comm.rank == 0:
        group.close()
        comm.barrier().wait(LONG)
        return "", 0.0
    began = time.monotonic()
    text = attempt(group.all_reduce(torch.ones(3)).wait, LONG).text
    took = time.monotonic() - began
    comm.barrier().wait(LONG)
    return text, took


def test_rank_that_closed_the_group_is_named_at_once(transport: str) -> None:
    text, took = on_ranks(_closes, 2, transport, wait=LONG)[1]
    assert "rank 0 has closed this group and " in text
    assert took < LONG / 2


def _closes_and_sends_nothing() -> str:
    group, control = world().subgroup([0, 1]), fresh()
    assert group is not None
    text = ""
    if group.rank == 0:
        group.close()
    else:
        text = attempt(group.recv(0, like=torch.ones(3)).wait, LONG).text
    control.barrier().wait(LONG)
    return text


def test_receive_from_a_closed_group_fails(transport: str) -> None:
    assert "rank 0 has closed this group and " in on_ranks(_closes_and_sends_nothing, 2, transport, wait=LONG)[1]


def _closes_before_it_receives() -> str:
    group, control = world().subgroup([0, 1]), fresh()
    assert group is not None
    if group.rank == 0:
        sent = group.send(torch.ones(30_000), 1)
        control.barrier().wait()
        text = attempt(sent.wait, LONG).text
    else:
        control.barrier().wait()
        group.close()
        text = ""
    control.barrier().wait(LONG)
    return text


@pytest.mark.filterwarnings("ignore:.*was never received:ResourceWarning")
def test_large_message_to_a_closed_group_fails(transport: str) -> None:
    assert "rank 1 has closed this group" in on_ranks(_closes_before_it_receives, 2, transport, wait=LONG)[0]


def _waits_in_two_groups() -> str:
    """Two threads of rank 0 wait in a group each; rank 1 joins neither, and waits for it in a third one."""
    own, groups, third = collshim.current(), [fresh(), fresh()], fresh()

    def wait(place: int) -> None:
        with use(own):
            call = groups[0].barrier if place == 0 else lambda: groups[1].all_reduce(torch.ones(3))
            attempt(call().wait, 4 * SHORT)

    if own.rank == 1:
        time.sleep(SHORT)
        return attempt(third.barrier().wait, SHORT).text
    threads = [threading.Thread(target=wait, args=(place,)) for place in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    return ""


def test_waits_of_all_threads_of_a_rank_are_shown(checked: str) -> None:
    told = on_ranks(_waits_in_two_groups, 2, checked, wait=LONG)[1]
    assert "rank 0 waits in " in told
    assert "barrier() at test_whereabouts.py:" in told.partition("rank 0 waits in ")[2]
    assert "all_reduce(shape (3,), float32, op sum) at test_whereabouts.py:" in told


def _leaves_after_its_last_call() -> Any:
    """Rank 1 finishes and returns, while the root is busy for longer than between two checks of the others."""
    comm = world()
    if comm.rank == 0:
        transport: Any = comm._transport
        real = transport.stalls.never_come if hasattr(transport, "stalls") else None
        work = comm.gather(torch.ones(200_000), 0)
        time.sleep(SLOW)
        if real is not None:  # as its check between two slices does
            assert not real(transport.key, transport.ranks, transport.sequence - 1)
        gathered: Any = work.wait(LONG)
        return [part.sum().item() for part in gathered]
    return comm.gather(torch.ones(200_000), 0).wait(LONG)


def test_leaving_rank_does_not_fail_its_finished_calls(transport: str) -> None:
    assert on_ranks(_leaves_after_its_last_call, 2, transport, wait=LONG)[0] == [200_000.0] * 2


def _makes_a_group_while_one_waits() -> str:
    """Rank 1 waits for rank 2, which computes, and so does not come to the group that rank 0 makes."""
    comm, control = world(), fresh()
    text = ""
    if comm.rank == 0:
        transport: Any = comm._transport
        before, transport.world.timeout = transport.world.timeout, SHORT
        text = attempt(comm.subgroup, [0, 1]).text
        transport.world.timeout = before
        control.send(torch.zeros(1), 2).wait(LONG)
    elif comm.rank == 2:
        control.recv(0, like=torch.zeros(1)).wait(LONG)
        comm.send(torch.zeros(1), 1).wait(LONG)
    else:
        comm.recv(2, like=torch.zeros(1)).wait(LONG)
    control.barrier().wait(LONG)
    return text


def test_group_that_is_not_made_names_the_cause() -> None:
    told = on_ranks(_makes_a_group_while_one_waits, 3, "processes", wait=LONG)[0]
    assert "making a group of the world's ranks [0, 1] at " in told
    assert "1 of 2 ranks did not arrive within 1 s: rank 1 waits in recv(shape (1,), float32, from 2) " in told
    assert "; rank 1 waits for rank 2, which waits in recv(shape (1,), float32, from 0) " in told


@pytest.mark.parametrize("collects", [True, False])
def test_looking_at_a_thread_runs_no_destructors(collects: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python holds a lock meanwhile, and the destructors of tensors release the GIL."""
    frames, collected = sys._current_frames, list[bool]()

    def observed() -> Any:
        collected.append(gc.isenabled())
        return frames()

    monkeypatch.setattr(sys, "_current_frames", observed)
    before = gc.isenabled()
    gc.enable() if collects else gc.disable()
    try:
        line_of(threading.get_ident())
        assert (collected, gc.isenabled()) == ([False], collects)
    finally:
        gc.enable() if before else gc.disable()
