"""comm_func.all_gather_into_tensor: the documented example, both forms of the output, the handle, gradients, errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

import collshim
import collshim.mindspore as ms
from collshim.mindspore.communication import comm_func, get_rank

if TYPE_CHECKING:
    from tests.adapters.mindspore.conftest import Refused, Run

gather: Any = comm_func.all_gather_into_tensor  # what types forbid is tried too


def values() -> torch.Tensor:
    return torch.arange(6.0).reshape(2, 3) + 10 * get_rank()


def concatenated(size: int) -> list[list[float]]:
    return [[10.0 * rank + 3 * row + column for column in range(3)] for rank in range(size) for row in range(2)]


def test_the_documented_example(run: Run, size: int) -> None:
    def rank() -> Any:
        return gather(ms.Tensor(np.ones([2, 8]).astype(np.float32)))

    for output, handle in run(rank, size):
        assert handle is None
        assert torch.equal(output, torch.ones(2 * size, 8))


def test_the_output_joins_all_tensors_along_the_first_dimension_in_rank_order(run: Run, size: int) -> None:
    assert run(lambda: gather(values())[0].tolist(), size) == [concatenated(size)] * size


def test_the_option_gives_the_stacked_form_of_the_reference_manual(run: Run, size: int) -> None:
    def rank() -> Any:
        with collshim.options(mindspore_gather="stacked"):
            output, handle = gather(values())
        return tuple(output.shape), output.flatten(0, 1).tolist(), handle

    assert run(rank, size) == [((size, 2, 3), concatenated(size), None)] * size


def test_the_environment_gives_the_stacked_form_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLSHIM_MINDSPORE_GATHER", "stacked")
    assert run(lambda: tuple(gather(values())[0].shape), 2) == [(2, 2, 3)] * 2


def test_ranks_may_choose_different_forms(run: Run) -> None:
    def rank() -> Any:
        with collshim.options(mindspore_gather="stacked" if get_rank() else "concatenated"):
            return tuple(gather(values())[0].shape)

    assert run(rank, 2) == [(4, 3), (2, 2, 3)]


@pytest.mark.parametrize(("form", "shape"), [("concatenated", (4, 3)), ("stacked", (2, 2, 3))])
def test_an_asynchronous_output_is_complete_after_the_handles_wait(run: Run, form: str, shape: tuple[int, ...]) -> None:
    def rank() -> Any:
        with collshim.options(mindspore_gather=form):
            output, handle = gather(values(), async_op=True)
        assert type(handle) is comm_func.CommHandle
        waited: Any = handle
        return waited.wait(), tuple(output.shape), output.reshape(4, 3).tolist()

    assert run(rank, 2) == [(None, shape, concatenated(2))] * 2


def test_two_asynchronous_calls_may_be_waited_for_in_any_order(run: Run) -> None:
    def rank() -> Any:
        calls = [gather(values() + 100 * call, async_op=True) for call in range(2)]
        for _, handle in reversed(calls):
            handle.wait()
        return [output[0, 0].item() for output, _ in calls]

    assert run(rank, 2) == [[0.0, 100.0]] * 2


@pytest.mark.parametrize("async_op", [False, True])
def test_numpy_arrays_give_numpy_arrays(run: Run, async_op: bool) -> None:
    def rank() -> Any:
        output, handle = gather(values().numpy(), async_op=async_op)
        if handle:
            handle.wait()
        return type(output), output.dtype, output.tolist()

    assert run(rank, 2) == [(np.ndarray, np.dtype(np.float32), concatenated(2))] * 2


def test_zero_dimensional_tensors_give_one_element_per_rank(run: Run, size: int) -> None:
    assert run(lambda: gather(torch.tensor(get_rank()))[0].tolist(), size) == [list(range(size))] * size


def test_the_input_is_unchanged(run: Run) -> None:
    def rank() -> Any:
        tensor = values()
        gather(tensor)[0].zero_()
        return torch.equal(tensor, values())

    assert run(rank, 2) == [True, True]


@pytest.mark.parametrize("async_op", [False, True])
@pytest.mark.parametrize("form", ["concatenated", "stacked"])
def test_the_gradient_is_the_sum_over_all_ranks_losses(run: Run, size: int, form: str, async_op: bool) -> None:
    def rank() -> Any:
        tensor = values().requires_grad_()
        with collshim.options(mindspore_gather=form):
            output, handle = gather(tensor, async_op=async_op)
        if handle:
            handle.wait()
        (output.sum() * (get_rank() + 1)).backward()
        assert tensor.grad is not None
        return tensor.grad.tolist()

    assert run(rank, size) == [[[size * (size + 1) / 2] * 3] * 2] * size


def test_what_is_no_tensor_is_refused_even_before_init(refused: Refused) -> None:
    wanted = "For all_gather_into_tensor, the input tensor must be tensor"

    def rank() -> str:
        return refused(TypeError, lambda: gather([1]))

    assert all(wanted in text for text in collshim.launch(rank, 2, timeout=30))


@pytest.mark.parametrize("group", [None, 1])
def test_a_group_that_is_no_string_is_refused(run: Run, refused: Refused, group: Any) -> None:
    def rank() -> str:
        return refused(TypeError, lambda: gather(values(), group))

    wanted = f"the argument 'group' must be type of string, but got 'group' type : {type(group)}."
    assert all(wanted in text for text in run(rank, 2))


def test_an_unknown_group_is_refused(run: Run, refused: Refused) -> None:
    texts = run(lambda: refused(RuntimeError, lambda: gather(values(), "nope")), 2)
    assert texts == [f"The group nope does not exist. (rank {rank} of 2)" for rank in range(2)]


def test_without_init_the_error_says_to_call_it() -> None:
    def rank() -> str:
        with pytest.raises(RuntimeError, match="Please call `init\\(\\)` method first") as caught:
            gather(torch.ones(2))
        return type(caught.value).__name__

    assert collshim.launch(rank, 2, timeout=30) == ["WorldError"] * 2


def test_shapes_that_differ_between_ranks_are_told_on_every_rank(run: Run) -> None:
    def rank() -> str:
        with pytest.raises(collshim.MismatchError) as caught:
            gather(torch.ones(2 + get_rank()))
        return str(caught.value)

    first, second = run(rank, 2)
    assert first == second
    assert "disagree on shape" in first
