from __future__ import annotations

from typing import Any

import pytest
import torch

import collshim
import collshim.tensorflow as tf
from tests.adapters.tensorflow.conftest import Run, context, mirrored, replica, run_workers


def gathered(value: Any, axis: Any = 0) -> Any:
    return context().all_gather(value, axis)


def test_dict_order_may_differ_between_replicas(run_two: Run) -> None:
    def gather() -> Any:
        pairs = [("a", torch.tensor([1, replica()])), ("b", torch.tensor([2.0]))]
        return gathered(dict(pairs if replica() else pairs[::-1]))

    for result in run_two(gather):
        assert result["a"].tolist() == [1, 0, 1, 1]
        assert result["b"].tolist() == [2.0, 2.0]


@pytest.mark.parametrize("collective", [gathered, lambda value: context().all_reduce("SUM", value)])
def test_input_is_neither_changed_nor_shared(run: Run, collective: Any) -> None:
    inputs: dict[int, torch.Tensor] = {}

    def given_and_overwritten() -> None:
        inputs[replica()] = torch.tensor([replica()])
        collective(inputs[replica()]).fill_(7)

    run(given_and_overwritten)
    assert all(given.tolist() == [rank] for rank, given in inputs.items())


def test_distributed_value_gives_each_replica_its_component() -> None:
    strategy = mirrored(2)
    value = strategy.experimental_distribute_values_from_function(
        lambda ctx: torch.full((ctx.replica_id_in_sync_group + 1,), ctx.replica_id_in_sync_group)
    )
    for result in strategy.experimental_local_results(strategy.run(lambda: gathered(value))):
        assert result.tolist() == [0, 1, 1]


def test_axis_can_be_a_tensor(run_two: Run) -> None:
    for result in run_two(lambda: gathered(torch.tensor([[replica()]]), axis=torch.tensor(1, dtype=torch.int32))):
        assert result.tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("shape", "axis", "said"),
    [
        ((2, 2), -1, r"Requires start <= limit when delta > 0: 0/-1"),
        ((2, 2), -2, r"Requires start <= limit when delta > 0: 0/-2"),
        ((3,), 1, r"Requires start <= limit when delta > 0: 2/1"),
        ((), 0, r"Requires start <= limit when delta > 0: 1/0"),
        ((), 0, r"Can't concatenate scalars \(use tf.stack instead\)"),
        ((3,), 1, r"Expected concatenating dimensions in the range .* but got 1"),
    ],
)
def test_scalars_and_axes_out_of_range_are_refused(run_two: Run, shape: tuple[int, ...], axis: int, said: str) -> None:
    for kind in (ValueError, tf.errors.InvalidArgumentError, collshim.ArgumentError):
        with pytest.raises(kind, match=said):
            run_two(lambda: gathered(torch.ones(shape), axis))


@pytest.mark.parametrize(
    ("shapes", "axis", "said"),
    [
        ([(1, 1), (1, 2)], 0, r"Shape mismatch in the collective.*Dimension 1 in both shapes must be equal"),
        ([(2, 1), (1, 1)], 1, r"Shape mismatch in the collective.*Dimension 0 in both shapes must be equal"),
        ([(1,), (1, 1)], 0, r"Shape mismatch in the collective.*\[\[1\], \[1, 1\]\]"),
    ],
)
def test_different_other_axes_are_an_invalid_argument(
    run_two: Run, shapes: list[tuple[int, ...]], axis: int, said: str
) -> None:
    for kind in (tf.errors.InvalidArgumentError, collshim.MismatchError):
        with pytest.raises(kind, match=said):
            run_two(lambda: gathered(torch.ones(shapes[replica()]), axis))


def test_workers_continue_after_a_mismatch() -> None:
    def gather() -> Any:
        with pytest.raises(tf.errors.InvalidArgumentError):
            gathered([torch.ones(1, replica() + 1), torch.ones(2, replica() + 1)])
        return gathered(torch.tensor([replica()])).tolist()

    assert run_workers(2, gather) == [[0, 1], [0, 1]]


@pytest.mark.parametrize("value", [None, "text"])
def test_non_tensor_is_refused(run: Run, value: object) -> None:
    with pytest.raises(ValueError, match=r"Attempt to convert a value .* with an unsupported type"):
        run(lambda: gathered([value]))


def test_numbers_are_refused_as_scalars(run_two: Run) -> None:
    with pytest.raises(ValueError, match=r"Can't concatenate scalars"):
        run_two(lambda: gathered([1.0, 2.0]))


def test_axis_must_be_an_integer(run_two: Run) -> None:
    with pytest.raises(TypeError, match="axis is 'x'"):
        run_two(lambda: gathered(torch.ones(1), axis="x"))
