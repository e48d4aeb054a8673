"""Each collective: who holds what afterwards, what is returned, and that what is given is written, not replaced."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor

import collshim.torch.distributed as dist

if TYPE_CHECKING:
    from tests.adapters.torch.conftest import Run

SIZE = 3
Call = Callable[..., "tuple[dist.Work | None, Tensor]"]


def _joined(parts: list[list[float]]) -> list[float]:
    return [value for part in parts for value in part]


def _mine() -> Tensor:
    """[1, 2] on rank 0, [2, 3] on rank 1, ..."""
    return torch.arange(2.0) + 1 + dist.get_rank()


def _all_reduce(**options: Any) -> tuple[Any, Tensor]:
    return dist.all_reduce(tensor := _mine(), **options), tensor


def _reduce(**options: Any) -> tuple[Any, Tensor]:
    return dist.reduce(tensor := _mine(), 1, **options), tensor


def _broadcast(**options: Any) -> tuple[Any, Tensor]:
    return dist.broadcast(tensor := _mine(), 1, **options), tensor


def _all_gather(**options: Any) -> tuple[Any, Tensor]:
    output = torch.zeros(SIZE, 2)
    return dist.all_gather(list(output), _mine(), **options), output


def _all_gather_single(**options: Any) -> tuple[Any, Tensor]:
    return dist.all_gather_single(output := torch.zeros(SIZE * 2), _mine(), **options), output


def _gather(**options: Any) -> tuple[Any, Tensor]:
    output = torch.zeros(SIZE, 2)
    there = list(output) if dist.get_rank() == 1 else None
    return dist.gather(_mine(), there, 1, **options), output


def _scatter(**options: Any) -> tuple[Any, Tensor]:
    parts = [_mine() + 10 * part for part in range(SIZE)]
    given = parts if dist.get_rank() == 1 else None
    return dist.scatter(output := torch.zeros(2), given, 1, **options), output


def _reduce_scatter(**options: Any) -> tuple[Any, Tensor]:
    parts = [_mine() + 10 * part for part in range(SIZE)]
    return dist.reduce_scatter(output := torch.zeros(2), parts, **options), output


def _reduce_scatter_single(**options: Any) -> tuple[Any, Tensor]:
    whole = torch.cat([_mine() + 10 * part for part in range(SIZE)])
    return dist.reduce_scatter_single(output := torch.zeros(2), whole, **options), output


def _all_to_all(**options: Any) -> tuple[Any, Tensor]:
    output = torch.zeros(SIZE, 2)
    return dist.all_to_all(list(output), [_mine() + 10 * part for part in range(SIZE)], **options), output


def _all_to_all_single(**options: Any) -> tuple[Any, Tensor]:
    whole = torch.cat([_mine() + 10 * part for part in range(SIZE)])
    return dist.all_to_all_single(output := torch.zeros(SIZE * 2), whole, **options), output


MINE = [[1.0, 2.0], [2.0, 3.0], [3.0, 4.0]]
NOTHING = [[0.0, 0.0]] * SIZE
REDUCED = [[6.0 + 30 * rank, 9.0 + 30 * rank] for rank in range(SIZE)]
EXCHANGED = [[[1.0 + giver + 10 * rank, 2.0 + giver + 10 * rank] for giver in range(SIZE)] for rank in range(SIZE)]
CALLS: dict[str, tuple[Call, list[Any]]] = {
    "all_reduce": (_all_reduce, [[6.0, 9.0]] * SIZE),
    "reduce": (_reduce, [MINE[0], [6.0, 9.0], MINE[2]]),
    "broadcast": (_broadcast, [MINE[1]] * SIZE),
    "all_gather": (_all_gather, [MINE] * SIZE),
    "all_gather_single": (_all_gather_single, [_joined(MINE)] * SIZE),
    "gather": (_gather, [NOTHING, MINE, NOTHING]),
    "scatter": (_scatter, [[2.0, 3.0], [12.0, 13.0], [22.0, 23.0]]),
    "reduce_scatter": (_reduce_scatter, REDUCED),
    "reduce_scatter_single": (_reduce_scatter_single, REDUCED),
    "all_to_all": (_all_to_all, EXCHANGED),
    "all_to_all_single": (_all_to_all_single, [_joined(parts) for parts in EXCHANGED]),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_returns_none_and_writes_its_output(run: Run, name: str) -> None:
    call, expected = CALLS[name]

    def rank() -> Any:
        returned, output = call()
        assert returned is None
        return output.tolist()

    assert run(rank, SIZE) == expected


@pytest.mark.parametrize("name", CALLS)
def test_an_asynchronous_call_returns_a_work_whose_wait_is_true(run: Run, name: str) -> None:
    call, expected = CALLS[name]

    def rank() -> Any:
        work, output = call(async_op=True)
        assert isinstance(work, dist.Work)
        assert work.wait() is True
        assert (work.is_completed(), work.is_success(), work.exception()) == (True, True, None)
        return output.tolist()

    assert run(rank, SIZE) == expected


@pytest.mark.parametrize("name", CALLS)
def test_a_call_in_a_group_reaches_its_ranks_alone(run: Run, name: str) -> None:
    call, expected = CALLS[name]

    def rank() -> Any:
        everybody = dist.new_group()
        return call(group=everybody)[1].tolist()

    assert run(rank, SIZE) == expected


@pytest.mark.parametrize("name", CALLS)
def test_outside_the_group_a_call_warns_and_does_nothing(run: Run, name: str) -> None:
    call, what = CALLS[name][0], rf"Running {name} on global rank 2 which does not belong to the given group\."

    def rank() -> Any:
        group = dist.new_group([0, 1])
        if dist.get_rank() < 2:
            return None
        returned, output = call(group=group)
        return returned, output.tolist()

    with pytest.warns(UserWarning, match=what):
        found = run(rank, SIZE)
    before = {"all_reduce": MINE[2], "reduce": MINE[2], "broadcast": MINE[2]}
    assert found[2][0] is None
    assert found[2][1] == before.get(name, torch.zeros_like(torch.tensor(found[2][1])).tolist())


@pytest.mark.filterwarnings("ignore:.*is deprecated:FutureWarning")
def test_the_old_names_do_the_same(run: Run) -> None:
    def rank() -> Any:
        gathered, reduced = torch.zeros(SIZE * 2), torch.zeros(2)
        assert dist.all_gather_into_tensor(gathered, _mine()) is None
        assert dist.reduce_scatter_tensor(reduced, gathered) is None
        return gathered.tolist(), reduced.tolist()

    assert run(rank, SIZE) == [(_joined(MINE), [3 * value for value in MINE[rank]]) for rank in range(SIZE)]


@pytest.mark.parametrize("name", ["_all_gather_base", "_reduce_scatter_base"])
def test_a_private_name_is_told_to_be_one(name: str) -> None:
    words = f"`torch.distributed.{name}` is a private function and will be deprecated"
    with pytest.warns(FutureWarning, match=words) as told, pytest.raises(TypeError):
        getattr(dist, name)(None, None)
    assert told[0].filename == __file__


@pytest.mark.parametrize("name", ["all_gather_into_tensor", "reduce_scatter_tensor"])
def test_the_old_names_warn_as_torch_does(run: Run, name: str) -> None:
    with pytest.warns(FutureWarning, match=f"`torch.distributed.{name}` is deprecated"):
        run(lambda: getattr(dist, name)(torch.zeros(2), torch.ones(2)), 1)


def test_a_world_of_one_speaks_to_itself(run: Run) -> None:
    def rank() -> Any:
        tensor, output = torch.ones(2), torch.zeros(2)
        dist.all_reduce(tensor, dist.ReduceOp.AVG)
        dist.all_to_all_single(output, tensor)
        dist.gather(tensor, [output], 0)
        dist.barrier()
        return tensor.tolist(), output.tolist()

    assert run(rank, 1) == [([1.0, 1.0], [1.0, 1.0])]


def test_barrier_returns_none_or_a_work(run: Run) -> None:
    def rank() -> Any:
        work = dist.barrier(async_op=True)
        assert isinstance(work, dist.Work)
        return dist.barrier(), work.wait(), dist.barrier(device_ids=[0])

    assert run(rank, 2) == [(None, True, None)] * 2
