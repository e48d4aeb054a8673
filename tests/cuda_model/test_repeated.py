"""A repeated call on GPUs is not validated again, and its wait has the same host cost at any size."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch

from collshim import Communicator
from collshim.errors import ArgumentError
from tests.cuda_model.hardware import require_model
from tests.cuda_model.ranks import Setting, among_gpus, device, values
from tests.engine.call_counts import count

require_model()

NUMBERS = 8


def calls_of(comm: Communicator, numbers: int = NUMBERS) -> dict[str, Callable[[], Any]]:
    x, whole = torch.ones(numbers, device=device()), torch.empty(comm.size, numbers, device=device())
    parts = list(torch.empty_like(whole).unbind(0))
    return {
        "all_reduce": lambda: comm.all_reduce(x, out=x).wait(),
        "broadcast": lambda: comm.broadcast(x, 0, out=x).wait(),
        "all_gather": lambda: comm.all_gather(x, out=whole).wait(),
        "all_gather, list": lambda: comm.all_gather(x, out=parts).wait(),
        "all_to_all": lambda: comm.all_to_all(whole, out=torch.empty_like(whole)).wait(),
        "reduce_scatter": lambda: comm.reduce_scatter(whole, out=x).wait(),
    }


# Python calls into collshim's files, of post and wait: with the check off, and by default, which keeps call sites.
BOUNDS = {
    "all_reduce": (13, 19),
    "broadcast": (13, 19),
    "all_gather": (13, 19),
    "all_gather, list": (29, 35),
    "all_to_all": (14, 19),
    "reduce_scatter": (14, 19),
}


def counts(comm: Communicator) -> dict[str, int]:
    found = {}
    for name, call in calls_of(comm).items():
        call()
        found[name] = min(count(call).calls for _ in range(5))
    return found


@pytest.mark.parametrize(("place", "checks"), [(0, False), (1, None)])
def test_repeated_call_takes_few_python_calls(place: int, checks: bool | None) -> None:
    for found in values(among_gpus(counts, 2, setting=Setting(checks=checks))):
        assert {name: number for name, number in found.items() if number > BOUNDS[name][place]} == {}


def held(comm: Communicator) -> dict[str, int]:
    """Count how often a wait on another stream than the post's holds memory for it."""
    found = dict[str, int]()
    for numbers in (NUMBERS, 500_000):
        x = torch.ones(numbers, 2, device=device())
        work, other = comm.all_reduce(x), torch.cuda.Stream()
        torch.cuda.synchronize()
        with torch.cuda.stream(other):
            found[str(numbers)] = count_of("record_stream", work.wait)
    return found


def count_of(name: str, call: Callable[[], Any]) -> int:
    """Count this thread's calls of a C method during a call."""
    found = list[str]()

    def seen(frame: Any, event: str, argument: Any) -> None:
        if event == "c_call" and argument.__name__ == name:
            found.append(name)

    sys.setprofile(seen)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len(found)


def test_wait_holds_a_result_once_at_any_size() -> None:
    for found in values(among_gpus(held, 2)):
        assert set(found.values()) == {1}


def on_other_devices(comm: Communicator) -> list[str]:
    """Make a call, and others that differ only by the device of one tensor; no rank sends anything for those."""
    x, whole = torch.ones(NUMBERS, device=device()), torch.empty(comm.size, NUMBERS, device=device())
    comm.all_gather(x, out=whole).wait()
    comm.all_gather(x, out=list(whole.unbind(0))).wait()
    other = torch.device("cuda", torch.cuda.device_count() - 1)
    texts = []
    for wrong in (torch.empty_like(whole, device=other), torch.empty_like(whole, device="cpu")):
        for out in (wrong, list(wrong.unbind(0)), [whole[0], wrong[1]]):
            with pytest.raises(ArgumentError) as refusal:
                comm.all_gather(x, out=out)
            texts.append(str(refusal.value))
    return texts


def test_earlier_call_does_not_validate_another_device() -> None:
    for texts in values(among_gpus(on_other_devices, 2)):
        assert ["cuda:3" in text for text in texts] == [True] * 3 + [False] * 3
        assert all("device" in text for text in texts)


def before_and_after_others(comm: Communicator) -> list[float]:
    """By default calls on the CPU are compared and those on a GPU are not; they keep their posting order."""
    found = []
    for turn in range(5):
        first, last = torch.full((4,), float(turn)), torch.full((4,), turn + 0.5)
        there = torch.full((4,), float(turn), device=device())
        works = [comm.all_reduce(tensor, out=tensor) for tensor in (first, there, last)]
        for work in works if turn % 2 else reversed(works):
            work.wait()
        found += [tensor[0].item() for tensor in (first, there, last)]
    return found


def test_gpu_and_compared_cpu_calls_keep_their_order() -> None:
    expected = [number for turn in range(5) for number in (2.0 * turn, 2.0 * turn, 2.0 * turn + 1)]
    for found in values(among_gpus(before_and_after_others, 2, setting=Setting(checks=None))):
        assert found == expected
