"""A repeated call, which is not validated again, has the results of a first one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import collshim
import collshim.torch.distributed as dist
from tests.adapters.conftest import Run, each_of
from tests.engine.foreign import Foreign
from tests.engine.worlds import attempt


def _rank() -> int:
    return dist.get_rank()


def _twice(call: Callable[[], Any]) -> Callable[[], Any]:
    """Make the same calls twice and return the second results."""
    return lambda: [call(), call()][1]


def test_repeated_async_calls_return_the_callers_tensors(run: Run) -> None:
    def calls() -> Any:
        tensor, parts, whole = torch.ones(2), [torch.zeros(2) for _ in range(2)], torch.zeros(4)
        works = [
            dist.all_reduce(tensor, async_op=True),
            dist.all_gather(parts, torch.ones(2), async_op=True),
            dist.all_gather_single(whole, torch.ones(2), async_op=True),
        ]
        results = [work.result() for work in works if work is not None]
        return (
            results[0][0] is tensor,
            results[1] is parts or results[1][0] is parts[0],
            len(results[2]),
            whole.tolist(),
        )

    assert run(_twice(calls), 2) == [(True, True, 2, [1.0] * 4)] * 2


def test_other_array_kinds_and_lists_are_repeated(run: Run) -> None:
    def calls() -> Any:
        array, parts = np.ones(2, dtype=np.float32), [np.zeros(2, dtype=np.float32) for _ in range(2)]
        dist.all_reduce(array)
        dist.all_gather(parts, array)
        return array.tolist(), [part.tolist() for part in parts]

    assert run(_twice(calls), 2) == [([2.0, 2.0], [[2.0, 2.0]] * 2)] * 2


def test_pieces_of_length_one_are_repeated(run: Run) -> None:
    def calls() -> Any:
        out, own = torch.zeros(2), torch.tensor([10.0 * _rank(), 10.0 * _rank() + 1])
        dist.all_to_all_single(out, own)
        single = torch.zeros(1)
        dist.reduce_scatter_single(single, own)
        return out.tolist(), single.tolist()

    assert run(_twice(calls), 2) == [([0.0, 10.0], [10.0]), ([1.0, 11.0], [12.0])]


def test_repeated_exchange_validates_another_output_kind(run: Run) -> None:
    def calls() -> Any:
        own, out = torch.tensor([10.0 * _rank(), 10.0 * _rank() + 1]), torch.zeros(2)
        for _ in range(2):
            dist.all_to_all_single(torch.empty(2), own)
        dist.all_to_all_single(Foreign(out.numpy()), own)
        tried = [attempt(dist.all_to_all_single, wrong, own) for wrong in (torch.zeros(()), "")]
        return out.tolist(), ["ArgumentError" in outcome.raised for outcome in tried]

    assert run(calls, 2) == [([0.0, 10.0], [True, True]), ([1.0, 11.0], [True, True])]


def test_unit_pieces_meet_lists_after_an_engine_call(run: Run) -> None:
    def calls() -> Any:
        comm, arrays = collshim.current().communicator, [np.zeros((2, 3), np.float32) for _ in range(2)]
        comm.all_to_all(arrays[0], out=arrays[1]).wait()
        if _rank():
            dist.all_to_all_single(arrays[1], arrays[0])
        else:
            dist.all_to_all([torch.empty(1, 3), torch.empty(1, 3)], [torch.ones(1, 3)] * 2)
        return arrays[1].tolist() if _rank() else None

    assert run(_twice(calls), 2) == [None, [[1.0] * 3, [0.0] * 3]]


@each_of(3, gives=[[2.0, 0.0] * 2, None, [2.0, 0.0] * 2])
def test_repeated_group_call_keeps_its_ranks() -> Any:
    group = dist.new_group([2, 0], sort_ranks=False)
    if _rank() == 1:
        return None
    tensors = [torch.tensor([float(_rank())]) for _ in range(4)]
    for tensor, other in (tensors[:2], tensors[2:]):
        dist.broadcast(tensor, 2, group=group)
        dist.broadcast(other, group=group, group_src=1)
    return [tensor.item() for tensor in tensors]


def test_repeated_call_writes_only_strided_elements(run: Run) -> None:
    def calls() -> Any:
        whole = torch.ones(3, 2)
        dist.all_reduce(whole[:, 0])
        return whole.tolist()

    assert run(_twice(calls), 2) == [[[2.0, 1.0]] * 3] * 2


def test_coalesced_repeated_call_is_posted_at_the_end(run: Run) -> None:
    def calls() -> Any:
        first, second = torch.ones(2), torch.ones(3)
        dist.all_reduce(first)
        with dist._coalescing_manager():
            dist.all_reduce(first)
            dist.all_reduce(second)
            held = first.tolist()
        return held, first.tolist(), second.tolist()

    assert run(_twice(calls), 2) == [([2.0, 2.0], [4.0, 4.0], [2.0, 2.0, 2.0])] * 2


@pytest.mark.ranks(2)
def test_inference_mode_is_supported() -> None:
    tensor = torch.ones(2)
    dist.all_reduce(tensor)
    with torch.inference_mode():
        made = torch.ones(2)
        for _ in range(2):
            dist.all_reduce(made)
    dist.all_reduce(made)
    assert made.tolist() == [8.0, 8.0]
