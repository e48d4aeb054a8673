"""Groups that are closed, dropped or left, in any order on any ranks, with or without pending calls."""

from __future__ import annotations

import gc
import threading
import time
from typing import Any

import pytest
import torch

from collshim import Communicator
from collshim.transports.processes import ending, transport
from collshim.transports.processes.nccl import group as gpu_group
from tests.cuda_model import model
from tests.cuda_model.hardware import require_model
from tests.cuda_model.ranks import DEADLINE, SHORT, SLACK, Setting, among_gpus, ones, values
from tests.engine.worlds import attempt
from tests.gpu.alone import world_of_one

require_model()


def parts_of(comm: Communicator, count: int) -> list[Communicator]:
    """Return groups of all ranks, each of which has used NCCL."""
    parts = [comm.subgroup(range(comm.size)) for _ in range(count)]
    for part in parts:
        assert part is not None
        part.all_reduce(ones()).wait()
    torch.cuda.synchronize()
    return [part for part in parts if part is not None]


def unmet(comm: Communicator) -> float:
    """Rank 1 makes no second call; the others close."""
    comm.all_reduce(ones()).wait()
    torch.cuda.synchronize()
    if comm.rank == 1:
        time.sleep(DEADLINE + SLACK)
        return 0.0
    comm.all_reduce(ones()).wait()
    began = time.monotonic()
    assert attempt(comm.close).raised[:1] == ("DeadlineError",)
    return time.monotonic() - began


def test_close_before_an_unmatched_call_times_out() -> None:
    assert max(values(among_gpus(unmet, 2, setting=SHORT))) < DEADLINE + SLACK


def in_two_orders(comm: Communicator) -> float:
    parts = parts_of(comm, 3)
    began = time.monotonic()
    for part in parts if comm.rank == 0 else reversed(parts):
        part.close()
    return time.monotonic() - began


def test_ranks_can_close_groups_in_different_orders() -> None:
    """The end of a communicator waits for the other ranks, as in some releases of NCCL."""
    with model.setting("destroy_meets", 1):
        assert max(values(among_gpus(in_two_orders, 2))) < SLACK


def dropped_on_one_rank(comm: Communicator) -> float:
    parts = parts_of(comm, 1)
    began = time.monotonic()
    if comm.rank == 0:
        parts.clear()
        gc.collect()
    comm.all_reduce(ones()).wait()
    torch.cuda.synchronize()
    return time.monotonic() - began


def test_group_dropped_by_one_rank_delays_nobody() -> None:
    with model.setting("destroy_meets", 1):
        assert max(values(among_gpus(dropped_on_one_rank, 2))) < SLACK


@pytest.mark.parametrize("pending", [False, True], ids=["at rest", "with a call on its way"])
def test_garbage_collection_does_not_call_nccl(monkeypatch: pytest.MonkeyPatch, pending: bool) -> None:
    callers, end = list[Any](), gpu_group.end_nccl

    def told(group: Any, *, failed: bool) -> None:
        callers.append(threading.current_thread().name)
        end(group, failed=failed)

    def dropping(comm: Communicator) -> None:
        parts = parts_of(comm, 1)
        if pending:
            torch.cuda._sleep(1_500_000_000)
            parts[0].all_reduce(ones())
        parts.clear()
        gc.collect()
        time.sleep(0.5)

    monkeypatch.setattr(ending, "end_nccl", told)
    values(among_gpus(dropping, 2, setting=Setting(closes=False)))
    assert set(callers) == {"collshim-ending"}
    assert len(callers) >= 2  # and perhaps for the world's group, whose NCCL was not used


def test_one_of_two_threads_ends_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    ended, groups = list[Any](), transport.ProcessTransport._groups

    def slowly(self: transport.ProcessTransport) -> list[Any]:
        found = groups(self)
        time.sleep(0.1)
        return found

    monkeypatch.setattr(transport.ProcessTransport, "_groups", slowly)
    monkeypatch.setattr(ending, "end_nccl", lambda group, *, failed: ended.append(group))
    with world_of_one() as world:
        world.communicator.all_reduce(ones()).wait()
        torch.cuda.synchronize()
        own: Any = world.communicator._transport
        threads = [threading.Thread(target=own._let_go) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        deadline = time.monotonic() + SLACK
        while not ended and time.monotonic() < deadline:
            time.sleep(0.01)
    assert len(ended) == 1


@pytest.mark.parametrize("waits", [True, False], ids=["waited for", "not waited for"])
def test_dropped_group_counts_as_closed(monkeypatch: pytest.MonkeyPatch, waits: bool) -> None:
    close = transport.ProcessTransport._close_when_over

    def late(self: transport.ProcessTransport) -> None:
        time.sleep(0.1)
        close(self)

    def dropping(comm: Communicator) -> None:
        part = comm.subgroup([0, 1])
        assert part is not None
        work = part.all_reduce(ones())
        if waits:
            work.wait()

    monkeypatch.setattr(transport.ProcessTransport, "_close_when_over", late)
    values(among_gpus(dropping, 2, setting=Setting(rests=False)))  # a warning is an error here


def test_open_group_is_named() -> None:
    parts = list[Any]()
    found = among_gpus(lambda comm: parts.append(comm.subgroup([0, 1])), 2)
    assert {outcome.raised[:1] for outcome in found} == {("ResourceWarning",)}
    assert "was never closed" in found[0].text


def closed_with_work_on_its_way(comm: Communicator) -> list[float]:
    (part,) = parts_of(comm, 1)
    torch.cuda._sleep(1_500_000_000)
    x = ones()
    work = part.all_reduce(x, out=x)
    part.close()
    found = attempt(work.wait)
    return [*x.tolist(), float(bool(found.raised))]


def test_pending_calls_finish_before_a_group_closes() -> None:
    with model.setting("busy", 0.5):
        assert values(among_gpus(closed_with_work_on_its_way, 2)) == [[2.0, 2.0, 2.0, 2.0, 0.0]] * 2


def test_world_without_its_peer_closes_at_the_deadline() -> None:
    """Rank 1 leaves without closing anything, while NCCL's communicators wait for each other at their end."""

    def leaving(comm: Communicator) -> None:
        comm.all_reduce(ones()).wait()
        torch.cuda.synchronize()
        if comm.rank == 1:
            time.sleep(DEADLINE + SLACK)

    began = time.monotonic()
    with model.setting("destroy_meets", 1), model.setting("patience", 60):
        found = among_gpus(leaving, 2, setting=Setting(wait=DEADLINE))
    assert time.monotonic() - began < 2 * (DEADLINE + SLACK)
    assert "NCCL did not shut down 1 group" in found[0].text
