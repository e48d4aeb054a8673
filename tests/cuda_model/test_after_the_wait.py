"""A call that is aborted after its wait, which on CUDA only orders streams: its work, and the program, learn of it."""

from __future__ import annotations

import gc
import logging
import threading
import time
import weakref
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import torch

import collshim.torch.distributed as dist
from collshim import Communicator, Work
from tests.cuda_model.hardware import require_model
from tests.cuda_model.ranks import DEADLINE, SHORT, SLACK, Setting, among_gpus, device, ones, values
from tests.engine.worlds import Outcome, attempt

require_model()

LONG = Setting(wait=20.0, rests=False)


def leave(comm: Communicator) -> None:
    """Make no other call, as rank 1."""


def fail(comm: Communicator) -> None:
    raise ValueError("no data")


def come_late(comm: Communicator) -> None:
    time.sleep(DEADLINE + SLACK)


ENDS: dict[str, tuple[Setting, Callable[[Communicator], None], str]] = {
    "it leaves": (LONG, leave, "PeerError"),
    "it fails": (LONG, fail, "PeerError"),
    "it is late": (SHORT, come_late, "DeadlineError"),
}
"""Why rank 1 makes no second call: how long ranks wait, what it does, and the error of rank 0."""


def warm(comm: Communicator) -> None:
    comm.all_reduce(ones()).wait()
    torch.cuda.synchronize()


def told(work: Work[Any]) -> tuple[Any, ...]:
    """Return the state of a work once the device is at rest."""
    torch.cuda.synchronize()
    name = type(work.exception()).__name__
    return work.done(), name, attempt(work.wait).raised[0], attempt(work.result).raised[0]


def reduced(comm: Communicator) -> Work[Any]:
    return comm.all_reduce(ones())


def sent(comm: Communicator) -> Work[Any]:
    return comm.send(ones(), 1 - comm.rank)


def received(comm: Communicator) -> Work[Any]:
    return comm.recv(1 - comm.rank, like=ones())


def alike(call: Callable[[Communicator], Work[Any]]) -> list[Callable[[Communicator], Work[Any]]]:
    return [call, call]


CALLS: dict[str, list[Callable[[Communicator], Work[Any]]]] = {
    "all_reduce": alike(reduced),
    "of no dtype of NCCL's": alike(lambda comm: comm.all_reduce(ones().to(torch.int16))),
    "of a list": alike(lambda comm: comm.all_to_all([ones(), ones()], out=[ones(), ones()])),
    "coalesced": alike(lambda comm: comm.all_reduce_coalesced([ones(), ones()])),
    "send": [sent, received],
    "recv": [received, sent],
}
"""The calls of rank 0 and of rank 1, by name."""


def waited(comm: Communicator, end: str, name: str) -> Any:
    call = CALLS[name][comm.rank]
    call(comm).wait()
    torch.cuda.synchronize()
    if comm.rank == 1:
        ENDS[end][1](comm)
        return None
    work = call(comm)
    work.wait()
    return told(work)


CASES = [("it fails", "all_reduce"), ("it is late", "all_reduce"), *(("it leaves", name) for name in CALLS)]


@pytest.mark.parametrize(("end", "name"), CASES)
def test_waited_work_reports_a_later_failure(end: str, name: str) -> None:
    outcome, error = among_gpus(waited, 2, end, name, setting=ENDS[end][0])[0], ENDS[end][2]
    assert outcome.value == (True, error, error, error), outcome


def in_torchs_words(comm: Communicator) -> Any:
    dist.init_process_group("nccl")
    warm(comm)
    if comm.rank == 1:
        return None
    work: Any = dist.all_reduce(ones(), async_op=True)
    future = work.get_future()
    assert work.wait()
    torch.cuda.synchronize()
    found = work.is_completed(), work.is_success(), type(work.exception()).__name__, attempt(work.wait).raised[0]
    assert future.done()
    return *found, attempt(work.result).raised[0], "rank 1 has left" in attempt(work.get_future().wait).text


def test_torch_work_and_future_report_a_later_failure() -> None:
    found = among_gpus(in_torchs_words, 2, setting=LONG)[0].value
    assert found == (True, False, "PeerError", "PeerError", "PeerError", True)


def with_earlier_ones(comm: Communicator) -> Any:
    """Make several consecutive calls, of which rank 1 joins the first two."""
    warm(comm)
    works = [comm.all_reduce(ones()) for _ in range(2 if comm.rank else 4)]
    for work in works:
        work.wait()
    torch.cuda.synchronize()
    return [type(work.exception()).__name__ for work in works]


def test_works_completed_before_a_failure_succeed() -> None:
    found = among_gpus(with_earlier_ones, 2, setting=LONG)
    assert found[0].value == ["NoneType", "NoneType", "PeerError", "PeerError"]


def after_the_deadline(comm: Communicator) -> Any:
    warm(comm)
    if comm.rank == 1:
        come_late(comm)
    total = ones()
    work = comm.all_reduce(total, out=total)
    work.wait()
    torch.cuda.synchronize()
    return total.tolist() == [2.0] * 4, type(work.exception()).__name__


def test_rank_after_the_deadline_gets_no_result() -> None:
    assert values(among_gpus(after_the_deadline, 2, setting=SHORT)) == [(False, "DeadlineError")] * 2


def test_log_shows_the_abort_at_once(caplog: pytest.LogCaptureFixture) -> None:
    among_gpus(waited, 2, "it leaves", "all_reduce", setting=LONG)
    found = [record for record in caplog.records if record.name == "collshim"]
    assert [record.levelno for record in found] == [logging.ERROR]
    assert "calls on the GPU were aborted" in found[0].getMessage()
    assert "rank 1" in found[0].getMessage()


def unasked(comm: Communicator) -> float | None:
    warm(comm)
    return None if comm.rank == 1 else float(comm.all_reduce(ones()).wait()[0].item())


def test_closing_the_world_raises_unreported_failures() -> None:
    found = among_gpus(unasked, 2, setting=LONG)[0]
    assert found.raised[:1] == ("PeerError",)
    assert "rank 1 has left the world" in found.text


def asked(comm: Communicator) -> None:
    warm(comm)
    if comm.rank == 0:
        comm.all_reduce(ones()).wait().cpu()
        assert "BrokenCommunicatorError" in attempt(lambda: comm.all_reduce(ones())).raised


def test_closing_the_world_does_not_repeat_reported_failures() -> None:
    values(among_gpus(asked, 2, setting=LONG))


def ending(comm: Communicator, end: Callable[[Communicator], None]) -> list[Outcome]:
    """Close a part of the world twice, on rank 0."""
    part = comm.subgroup([0, 1])
    assert part is not None
    warm(part)
    if comm.rank == 1:
        part.close()
        comm.announce_leaving("has left the world")
        return []
    part.all_reduce(ones()).wait().cpu()
    return [attempt(end, part), attempt(end, part)]


@pytest.mark.parametrize("end", [Communicator.close, Communicator.settle])
def test_closing_a_group_raises_its_failure_once(end: Callable[[Communicator], None]) -> None:
    first, second = values(among_gpus(ending, 2, end, setting=LONG))[0]
    assert first.raised[:1] == ("PeerError",)
    assert second == Outcome()


def dropping(comm: Communicator) -> None:
    part = comm.subgroup([0, 1])
    assert part is not None
    warm(part)
    if comm.rank == 0:
        part.all_reduce(ones()).wait().cpu()
        end = weakref.ref(part._transport)
        del part
        limit = time.monotonic() + SLACK
        while end() is not None and time.monotonic() < limit:
            gc.collect()
            time.sleep(0.01)
        assert end() is None


def test_world_reports_the_failure_of_a_dropped_group() -> None:
    found = among_gpus(dropping, 2, setting=LONG)[0]
    assert found.raised[:1] == ("PeerError",)
    assert "rank 1 has left the world" in found.text


def destroying(comm: Communicator, is_part: bool) -> list[Any]:
    dist.init_process_group("nccl", timeout=timedelta(seconds=20))
    group: Any = dist.new_group([0, 1]) if is_part else None
    total = ones()
    dist.all_reduce(total, group=group)
    torch.cuda.synchronize()
    if comm.rank == 1:
        return []
    dist.all_reduce(total, group=group)
    total.cpu()
    found = attempt(dist.destroy_process_group, group)
    return [found.raised[:1], dist.is_initialized(), attempt(dist.destroy_process_group).raised[:1]]


def test_destroy_process_group_raises_the_failure() -> None:
    raised, is_initialized, _ = among_gpus(destroying, 2, False, setting=LONG)[0].value
    assert (raised, is_initialized) == (("PeerError",), False)


def test_destroy_process_group_of_a_subgroup_raises_it() -> None:
    found = among_gpus(destroying, 2, True, setting=LONG)[0].value
    assert found == [("PeerError",), True, ()]


def in_a_race(comm: Communicator) -> Any:
    """Let another thread wait repeatedly while the group ends."""
    warm(comm)
    if comm.rank == 1:
        return None
    works = [comm.all_reduce(ones()) for _ in range(50)]
    own = device()

    def wait(work: Work[Any]) -> None:
        torch.cuda.set_device(own)
        time.sleep(0.01)
        attempt(work.wait)

    threads = [threading.Thread(target=wait, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.cuda.synchronize()
    return {type(work.exception()).__name__ for work in works}


def test_wait_in_another_thread_keeps_the_failure() -> None:
    assert among_gpus(in_a_race, 2, setting=LONG)[0].value == {"PeerError"}
