"""What every rank holds after each operation: along every axis, in every order of a group, for every kind of array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import collshim.megengine as mge
from collshim.megengine.functional import distributed as F

dist = mge.distributed
Run = Callable[..., list[Any]]

SIZES = pytest.mark.parametrize("size", [2, 4])
ORDERS = pytest.mark.parametrize("backwards", [False, True], ids=["in order", "reversed"])


def given(rank: int, *shape: int) -> np.ndarray[Any, Any]:
    """Rank's input: counted from a hundred times its rank."""
    return np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape) + 100 * rank


def order(size: int, backwards: bool) -> list[int]:
    return list(range(size))[::-1] if backwards else list(range(size))


def called(name: str, shape: tuple[int, ...], ranks: list[int], arguments: dict[str, int]) -> Any:
    """One operation in a group of these ranks, on a tensor; its result as an array."""
    group = dist.WORLD if ranks == sorted(ranks) else dist.new_group(ranks)
    result = getattr(F, name)(torch.tensor(given(dist.get_rank(), *shape)), group, **arguments)
    assert result is None or type(result) is torch.Tensor
    return None if result is None else result.numpy()


def everyones(run: Run, name: str, size: int, backwards: bool, shape: tuple[int, ...], **arguments: int) -> list[Any]:
    """The results in the order of the group."""
    ranks = order(size, backwards)
    results = run(called, size, name, shape, ranks, arguments)
    return [results[rank] for rank in ranks]


def inputs(size: int, backwards: bool, shape: tuple[int, ...]) -> list[np.ndarray[Any, Any]]:
    return [given(rank, *shape) for rank in order(size, backwards)]


@SIZES
@ORDERS
@pytest.mark.parametrize(
    ("name", "reduced"), [("all_reduce_sum", np.sum), ("all_reduce_max", np.max), ("all_reduce_min", np.min)]
)
def test_all_reduce_gives_every_rank_the_reduction(
    run: Run, size: int, backwards: bool, name: str, reduced: Any
) -> None:
    for found in everyones(run, name, size, backwards, (2, 3)):
        np.testing.assert_array_equal(found, reduced(inputs(size, backwards, (2, 3)), axis=0))


@SIZES
@ORDERS
def test_reduce_sum_gives_the_first_of_the_group_the_sum_and_the_others_none(
    run: Run, size: int, backwards: bool
) -> None:
    root, *others = everyones(run, "reduce_sum", size, backwards, (2,))
    np.testing.assert_array_equal(root, np.sum(inputs(size, backwards, (2,)), axis=0))
    assert others == [None] * (size - 1)


@SIZES
@ORDERS
def test_broadcast_gives_every_rank_what_the_first_of_the_group_has(run: Run, size: int, backwards: bool) -> None:
    for found in everyones(run, "broadcast", size, backwards, (2, 3)):
        np.testing.assert_array_equal(found, inputs(size, backwards, (2, 3))[0])


@SIZES
@ORDERS
@pytest.mark.parametrize(("shape", "axis"), [((2,), 0), ((2, 3), 0), ((2, 3), 1), ((1, 2, 2), 2)])
def test_all_gather_joins_along_the_axis_in_the_order_of_the_group(
    run: Run, size: int, backwards: bool, shape: tuple[int, ...], axis: int
) -> None:
    for found in everyones(run, "all_gather", size, backwards, shape, axis=axis):
        np.testing.assert_array_equal(found, np.concatenate(inputs(size, backwards, shape), axis))


@SIZES
@ORDERS
@pytest.mark.parametrize(("shape", "axis"), [((2,), 0), ((2, 3), 1), ((1, 2, 2), 2)])
def test_gather_joins_on_the_first_of_the_group_alone(
    run: Run, size: int, backwards: bool, shape: tuple[int, ...], axis: int
) -> None:
    root, *others = everyones(run, "gather", size, backwards, shape, axis=axis)
    np.testing.assert_array_equal(root, np.concatenate(inputs(size, backwards, shape), axis))
    assert others == [None] * (size - 1)


@SIZES
@ORDERS
@pytest.mark.parametrize(("shape", "axis"), [((4,), 0), ((8, 2), 0), ((2, 4), 1), ((2, 3, 8), 2)])
def test_scatter_cuts_the_input_of_the_first_of_the_group(
    run: Run, size: int, backwards: bool, shape: tuple[int, ...], axis: int
) -> None:
    parts = np.split(inputs(size, backwards, shape)[0], size, axis)
    for found, part in zip(everyones(run, "scatter", size, backwards, shape, axis=axis), parts, strict=True):
        np.testing.assert_array_equal(found, part)


@SIZES
@ORDERS
@pytest.mark.parametrize(("shape", "axis"), [((4,), 0), ((8, 2), 0), ((2, 4), 1), ((2, 3, 8), 2)])
def test_reduce_scatter_sum_cuts_the_sum(
    run: Run, size: int, backwards: bool, shape: tuple[int, ...], axis: int
) -> None:
    parts = np.split(np.sum(inputs(size, backwards, shape), axis=0), size, axis)
    results = everyones(run, "reduce_scatter_sum", size, backwards, shape, axis=axis)
    for found, part in zip(results, parts, strict=True):
        np.testing.assert_array_equal(found, part)


@SIZES
@ORDERS
@pytest.mark.parametrize(
    ("shape", "cut", "joined"),
    [((4,), 0, 0), ((8,), 0, 0), ((4, 4), 0, 1), ((4, 4), 1, 0), ((4, 4), 1, 1), ((2, 4, 2), 1, 2)],
)
def test_all_to_all_cuts_along_one_axis_and_joins_along_another(
    run: Run, size: int, backwards: bool, shape: tuple[int, ...], cut: int, joined: int
) -> None:
    parts = [np.split(whole, size, cut) for whole in inputs(size, backwards, shape)]
    results = everyones(run, "all_to_all", size, backwards, shape, split_axis=cut, concat_axis=joined)
    for rank, found in enumerate(results):
        np.testing.assert_array_equal(found, np.concatenate([part[rank] for part in parts], joined))


def in_two_groups() -> dict[str, Any]:
    rank = dist.get_rank()
    group = dist.new_group([0, 2] if rank % 2 == 0 else [3, 1])
    x = given(rank, 2)
    names = ("all_gather", "broadcast", "reduce_sum", "scatter", "all_to_all")
    results = {name: getattr(F, name)(x, group) for name in names}
    dist.group_barrier(group)
    return {name: None if result is None else result.tolist() for name, result in results.items()}


def test_groups_0_2_and_3_1_work_at_the_same_time(run: Run) -> None:
    results = run(in_two_groups, 4)
    assert [result["all_gather"] for result in results] == [[0, 1, 200, 201], [300, 301, 100, 101]] * 2
    assert [result["broadcast"] for result in results] == [[0, 1], [300, 301]] * 2
    assert [result["reduce_sum"] for result in results] == [[200, 202], None, None, [400, 402]]
    assert [result["scatter"] for result in results] == [[0], [301], [1], [300]]
    assert [result["all_to_all"] for result in results] == [[0, 200], [301, 101], [1, 201], [300, 100]]


def scalars() -> list[Any]:
    x = torch.tensor(1.5 + dist.get_rank())
    results = [F.all_reduce_sum(x), F.all_reduce_max(x), F.reduce_sum(x), F.broadcast(x), F.all_gather(x)]
    return [None if result is None else (tuple(result.shape), result.tolist()) for result in results]


def test_scalars_stay_scalars_but_all_gather_makes_one_axis(run: Run) -> None:
    everywhere = [((), 4.0), ((), 2.5)]
    assert run(scalars, 2) == [
        [*everywhere, ((), 4.0), ((), 1.5), ((2,), [1.5, 2.5])],
        [*everywhere, None, ((), 1.5), ((2,), [1.5, 2.5])],
    ]


DTYPES = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32]


def summed_and_gathered(dtype: torch.dtype) -> list[torch.Tensor]:
    x = torch.tensor([0, 1, 2, 3]).to(dtype) + dist.get_rank()
    return [F.all_reduce_sum(x), F.all_gather(x)]


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_are_kept_more_of_them_than_megengine_takes(run: Run, dtype: torch.dtype) -> None:
    for total, everything in run(summed_and_gathered, 2, dtype):
        assert total.dtype is everything.dtype is dtype
        assert (total.tolist(), everything.tolist()) == ([1, 3, 5, 7], [0, 1, 2, 3, 1, 2, 3, 4])


def wrapped() -> tuple[Any, Any]:
    signed, unsigned = np.array([100, -100], np.int8), np.array([200, 100], np.uint8)
    return F.all_reduce_sum(signed).tolist(), F.all_reduce_sum(unsigned).tolist()


def test_integer_sums_wrap_around(run: Run) -> None:
    assert run(wrapped, 2) == [([-56, 56], [144, 200])] * 2


def of_another_shape_and_dtype() -> Any:
    root = dist.get_rank() == 0
    return F.broadcast(torch.tensor([[1, 2, 3]], dtype=torch.int32) if root else torch.zeros(2))


def test_broadcast_does_not_read_what_the_others_give(run: Run) -> None:
    for found in run(of_another_shape_and_dtype, 2):
        assert found.dtype is torch.int32
        assert found.tolist() == [[1, 2, 3]]


def with_none_elsewhere(name: str) -> Any:
    return getattr(F, name)(torch.arange(8.0) if dist.get_rank() == 0 else None).tolist()


def test_broadcast_and_scatter_take_none_off_the_root(run: Run) -> None:
    assert run(with_none_elsewhere, 2, "broadcast") == [list(range(8))] * 2
    assert run(with_none_elsewhere, 4, "scatter") == [[0, 1], [2, 3], [4, 5], [6, 7]]


NAMES = ["broadcast", "all_gather", "reduce_scatter_sum", "all_reduce_sum", "scatter", "all_to_all"]


def of_numpy(name: str) -> Any:
    return getattr(F, name)(np.arange(4, dtype=np.int32))


@pytest.mark.parametrize("name", NAMES)
def test_numpy_arrays_come_back_as_such(run: Run, name: str) -> None:
    for found in run(of_numpy, 2, name):
        assert type(found) is np.ndarray
        assert found.dtype == np.int32


def untouched(name: str) -> bool:
    x = torch.arange(4.0)
    result = getattr(F, name)(x)
    result += 1
    return x.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("name", NAMES)
def test_the_input_is_left_alone_and_shares_no_memory_with_the_result(run: Run, name: str) -> None:
    assert run(untouched, 2, name) == [True, True]


def round_the_ring(count: int) -> list[Any]:
    rank, size = dist.get_rank(), dist.get_world_size()
    received = []
    for x in (torch.arange(float(count)) + rank, torch.tensor(5.0 + rank), torch.tensor([[rank, 2]], dtype=torch.int8)):
        F.remote_send(x, (rank + 1) % size)
        received.append(F.remote_recv((rank - 1) % size, inp=x))
    return received


@SIZES
@pytest.mark.parametrize("count", [3, 300_000], ids=["small", "large"])
def test_every_rank_may_send_round_a_ring_before_it_receives(run: Run, size: int, count: int) -> None:
    for rank, (line, scalar, pair) in enumerate(run(round_the_ring, size, count)):
        before = (rank - 1) % size
        assert torch.equal(line, torch.arange(float(count)) + before)
        assert (tuple(scalar.shape), scalar.tolist()) == ((1,), [5 + before])
        assert (pair.dtype, pair.tolist()) == (torch.int8, [[before, 2]])


def twice(count: int) -> Any:
    if dist.get_rank() == 0:
        x = torch.ones(count)
        F.remote_send(x, 1)
        x.zero_()
        F.remote_send(torch.tensor([2.0, 3.0]), 1)
        return dist.group_barrier()
    dist.group_barrier()
    return F.remote_recv(0).sum().item(), F.remote_recv(0, inp=np.zeros(1))


@pytest.mark.parametrize("count", [1, 300_000], ids=["small", "large"])
def test_sends_arrive_in_their_order_as_they_were_when_sent(run: Run, count: int) -> None:
    _, (first, second) = run(twice, 2, count)
    assert first == count
    assert type(second) is np.ndarray
    assert second.tolist() == [2, 3]


def on_streams() -> list[Any]:
    x = torch.arange(2.0)
    return [F.all_reduce_sum(x, device=device) for device in ("xpu0:1", "xpux", "cpu0", "cpux:2")]


def test_streams_and_devices_that_are_there_are_accepted(run: Run) -> None:
    for found in run(on_streams, 2):
        assert [result.tolist() for result in found] == [[0, 2]] * 4


def by_mode() -> dict[str, Any]:
    x = torch.arange(2.0) + dist.get_rank()
    modes = ("REDUCE_SUM", "GATHER", "ALL_GATHER", "ALL_REDUCE_MIN")
    return {mode: F.collective_comm(x, mode, dist.WORLD, None).tolist() for mode in modes}


def test_collective_comm_has_an_output_on_every_rank(run: Run) -> None:
    everywhere = {"ALL_GATHER": [0, 1, 1, 2], "ALL_REDUCE_MIN": [0, 1]}
    root, other = run(by_mode, 2)
    assert root == {"REDUCE_SUM": [1, 3], "GATHER": [0, 1, 1, 2], **everywhere}
    assert other == {"REDUCE_SUM": [0], "GATHER": [0], **everywhere}


@pytest.mark.parametrize("name", ["split_axis", "concat_axis"])
def test_a_truth_value_for_an_axis_counts_as_its_number(run: Run, name: str) -> None:
    found, wanted = (everyones(run, "all_to_all", 2, False, (4, 2), **{name: axis}) for axis in (True, 1))
    np.testing.assert_array_equal(found, wanted)
