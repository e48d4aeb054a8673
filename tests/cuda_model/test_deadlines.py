"""A rank is missing, or fails: the others learn in time, and their GPUs are free again."""

from __future__ import annotations

import time
from typing import Any

import pytest
import torch

from collshim import Communicator
from tests.cuda_model import model
from tests.cuda_model.hardware import require_model
from tests.cuda_model.ranks import DEADLINE, SHORT, SLACK, Setting, among_gpus, device, ones, values
from tests.engine.worlds import attempt

require_model()


def absent(comm: Communicator, missing: int, warm: bool) -> Any:
    """Return the time that the host waited, the errors of the work and the next call; None on the missing rank."""
    if warm:
        comm.all_reduce(ones()).wait()
        torch.cuda.synchronize()
    if comm.rank == missing:
        time.sleep(DEADLINE + SLACK)
        return None
    began = time.monotonic()
    found = attempt(lambda: comm.all_reduce(ones()).wait())
    torch.cuda.synchronize()
    took = time.monotonic() - began
    later = attempt(lambda: comm.all_reduce(ones()).wait())
    return round(took, 1), found.text or later.text, later.raised[0]


@pytest.mark.parametrize("missing", [0, 1])
@pytest.mark.parametrize("warm", [False, True], ids=["first call", "later call"])
def test_missing_rank_is_named(missing: int, warm: bool) -> None:
    found = values(among_gpus(absent, 3, missing, warm, setting=SHORT))
    for rank in {0, 1, 2} - {missing}:
        seconds, text, later = found[rank]
        assert seconds < DEADLINE + SLACK
        assert f"1 of 3 ranks did not arrive: rank {missing} is in no collective" in text
        assert later == "BrokenCommunicatorError"


def absent_from_the_third(comm: Communicator) -> str:
    """Make five calls in quick succession and wait for each at once; rank 1 joins two of them."""
    tensors = [ones().repeat(number) for number in range(1, 6)]
    for tensor in tensors:
        comm.all_reduce(tensor, out=tensor).wait()
    torch.cuda.synchronize()
    for tensor in tensors[:2] if comm.rank == 1 else tensors:
        comm.all_reduce(tensor, out=tensor).wait()
    if comm.rank == 1:
        time.sleep(DEADLINE + SLACK)
        return ""
    torch.cuda.synchronize()
    return attempt(lambda: comm.all_reduce(ones()).wait()).text


def test_first_missed_call_is_named() -> None:
    text = values(among_gpus(absent_from_the_third, 2, setting=SHORT))[0]
    assert "all_reduce(shape (12,), float32, op sum): 1 of 2 ranks did not arrive: rank 1 is in no collective" in text


def polled(comm: Communicator) -> Any:
    comm.all_reduce(ones()).wait()
    if comm.rank == 1:
        time.sleep(DEADLINE + SLACK)
        return None
    comm.timeout = 1.0
    work = comm.all_reduce(ones())
    began = time.monotonic()
    while not work.done() and time.monotonic() - began < DEADLINE:
        time.sleep(0.05)
    return work.done(), type(work.exception()).__name__, str(work.exception())


def test_polling_past_the_deadline_fails_the_work() -> None:
    done, error, text = values(among_gpus(polled, 2, setting=SHORT))[0]
    assert (done, error) == (True, "DeadlineError")
    assert "rank 1 is in no collective" in text


def elsewhere(comm: Communicator) -> Any:
    """Rank 1 waits in a barrier of a part of the world while the others wait in NCCL."""
    part = comm.subgroup([0, 1]) if comm.rank < 2 else None
    comm.all_reduce(ones()).wait()
    if comm.rank == 1 and part is not None:
        return attempt(lambda: part.barrier().wait(DEADLINE + SLACK)).raised[0]
    comm.all_reduce(ones()).wait()
    torch.cuda.synchronize()
    return attempt(comm.barrier).text


def test_location_of_the_missing_rank_is_reported() -> None:
    found = values(among_gpus(elsewhere, 3, setting=SHORT))
    assert "rank 1 waits in barrier" in found[0]
    assert "rank 1 waits in barrier" in found[2]


def raising(comm: Communicator, warm: bool) -> Any:
    if warm:
        comm.all_reduce(ones()).wait()
    if comm.rank == 1:
        raise ValueError("no data")
    began = time.monotonic()
    found = attempt(lambda: comm.all_reduce(ones()).wait())
    torch.cuda.synchronize()
    took = time.monotonic() - began
    return took < SLACK, found.text or attempt(lambda: comm.all_reduce(ones()).wait()).text


@pytest.mark.parametrize("warm", [False, True], ids=["first call", "later call"])
def test_rank_that_raised_is_named_with_its_error(warm: bool) -> None:
    in_time, text = among_gpus(raising, 2, warm, setting=Setting(wait=30.0, rests=False))[0].value
    assert in_time
    assert "rank 1" in text
    assert "ValueError: no data" in text


def failing(comm: Communicator) -> Any:
    """Rank 1 has no memory for its result."""
    comm.all_gather(ones()).wait()
    own = torch.ones(1 << 22, device=device())
    torch.cuda.synchronize()
    torch.cuda.empty_cache()  # what other tests left

    def gather() -> None:
        comm.barrier().wait()  # also raises if the other rank failed before this one left the barrier
        if comm.rank == 1:
            fraction = torch.cuda.memory_reserved() / torch.cuda.get_device_properties(device()).total_memory
            torch.cuda.set_per_process_memory_fraction(fraction, device())
        comm.all_gather(own).wait()

    found = attempt(gather)
    torch.cuda.synchronize()
    return found.text or attempt(lambda: comm.all_gather(ones()).wait()).text


def test_local_failure_is_reported_to_the_others() -> None:
    try:
        found = values(among_gpus(failing, 2, setting=Setting(wait=20.0, rests=False)))
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0, 1)
    assert [text for text in found if "on rank 1: OutOfMemoryError" not in text] == []


def on_one_gpu(comm: Communicator) -> list[str]:
    found = attempt(lambda: comm.all_reduce(ones()).wait())
    assert "CommunicationError" in found.raised
    return [found.text, str(comm.all_reduce(torch.ones(2)).wait().tolist())]


def test_ranks_sharing_a_gpu_are_named_before_nccl() -> None:
    for text, on_cpu in values(among_gpus(on_one_gpu, 2, setting=Setting(one_gpu=True))):
        assert "ranks 0 and 1 are on one GPU, Simulated device" in text
        assert on_cpu == "[2.0, 2.0]"


def slow(comm: Communicator) -> list[float]:
    """All ranks arrive, but one GPU has other work for longer than the deadline."""
    comm.all_reduce(ones()).wait()
    torch.cuda.synchronize()
    comm.timeout = 1.0
    if comm.rank == 0:
        torch.cuda._sleep(1_500_000_000)
    return [value for _ in range(2) for value in comm.all_reduce(ones()).wait().tolist()]


def test_busy_gpu_does_not_end_the_group() -> None:
    with model.setting("busy", 3.0):
        assert values(among_gpus(slow, 2)) == [[2.0] * 8] * 2


def unmet_message(comm: Communicator, warm: bool) -> Any:
    if warm:
        comm.send(ones(), 1).wait() if comm.rank == 0 else comm.recv(0, like=ones()).wait()
        torch.cuda.synchronize()
    if comm.rank == 1:
        time.sleep(DEADLINE + SLACK)
        return None
    found = attempt(lambda: comm.send(ones(), 1).wait())
    torch.cuda.synchronize()
    return found.text or attempt(lambda: comm.all_reduce(ones()).wait()).text


def unmet_behind_a_call(comm: Communicator) -> str:
    """Make a call that all ranks join, and right after it a message that nobody receives."""
    comm.send(ones(), 1).wait() if comm.rank == 0 else comm.recv(0, like=ones()).wait()
    comm.all_reduce(ones()).wait()
    torch.cuda.synchronize()
    comm.all_reduce(ones()).wait()
    if comm.rank == 1:
        time.sleep(DEADLINE + SLACK)
        return ""
    comm.send(ones(), 1).wait()
    began = time.monotonic()
    torch.cuda.synchronize()
    assert time.monotonic() - began < DEADLINE + SLACK
    return attempt(lambda: comm.all_reduce(ones()).wait()).text


def test_message_after_a_call_has_its_own_deadline() -> None:
    text = values(among_gpus(unmet_behind_a_call, 2, setting=SHORT))[0]
    assert "send(shape (4,), float32, to 1) on rank 0: the data did not move" in text
    assert "rank 1 is in no collective" in text


@pytest.mark.parametrize("warm", [False, True], ids=["first message", "later message"])
def test_unreceived_send_names_its_receiver(warm: bool) -> None:
    text = values(among_gpus(unmet_message, 2, warm, setting=SHORT))[0]
    assert "rank 1 is in no collective" in text
