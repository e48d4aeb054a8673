"""comm_func.all_gather_into_tensor: the stacked form, which an option selects; its handle and gradient."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import collshim
from collshim.mindspore.communication import comm_func, get_rank
from tests.adapters.conftest import Run, each_of

gather: Any = comm_func.all_gather_into_tensor  # calls that the types forbid are tested too


def values() -> torch.Tensor:
    return torch.arange(6.0).reshape(2, 3) + 10 * get_rank()


def concatenated(size: int) -> list[list[float]]:
    return [[10.0 * rank + 3 * row + column for column in range(3)] for rank in range(size) for row in range(2)]


def test_option_selects_the_stacked_form(run: Run, size: int) -> None:
    def rank() -> Any:
        with collshim.options(mindspore_gather="stacked"):
            output, handle = gather(values())
        return tuple(output.shape), output.flatten(0, 1).tolist(), handle

    assert run(rank, size) == [((size, 2, 3), concatenated(size), None)] * size


def test_environment_selects_the_stacked_form(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLSHIM_MINDSPORE_GATHER", "stacked")
    assert run(lambda: tuple(gather(values())[0].shape), 2) == [(2, 2, 3)] * 2


@each_of(2, gives=[(4, 3), (2, 2, 3)])
def test_ranks_may_choose_different_forms() -> Any:
    with collshim.options(mindspore_gather="stacked" if get_rank() else "concatenated"):
        return tuple(gather(values())[0].shape)


@each_of(2, gives=[(None, (2, 2, 3), concatenated(2))] * 2)
def test_asynchronous_output_is_complete_after_the_wait() -> Any:
    with collshim.options(mindspore_gather="stacked"):
        output, handle = gather(values(), async_op=True)
    return handle.wait(), tuple(output.shape), output.flatten(0, 1).tolist()


@each_of(2, gives=[[0.0, 100.0]] * 2)
def test_asynchronous_calls_can_be_waited_for_in_any_order() -> Any:
    calls = [gather(values() + 100 * call, async_op=True) for call in range(2)]
    for _, handle in reversed(calls):
        handle.wait()
    return [output[0, 0].item() for output, _ in calls]


@pytest.mark.parametrize("async_op", [False, True])
@each_of(4, gives=[[[10.0] * 3] * 2] * 4)
def test_gradient_sums_losses_of_all_ranks(async_op: bool) -> Any:
    tensor = values().requires_grad_()
    with collshim.options(mindspore_gather="stacked"):
        output, handle = gather(tensor, async_op=async_op)
    if handle:
        handle.wait()
    (output.sum() * (get_rank() + 1)).backward()
    assert tensor.grad is not None
    return tensor.grad.tolist()
