"""The examples of torch's reference manual, on four ranks as threads and as processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from torch import Tensor

import collshim
import collshim.torch.distributed as dist

if TYPE_CHECKING:
    from tests.adapters.torch.conftest import Run

INPUTS = [range(6), range(10, 19), range(20, 25), range(30, 37)]
INPUT_SPLITS = [[2, 2, 1, 1], [3, 2, 2, 2], [2, 1, 1, 1], [2, 2, 2, 1]]
OUTPUT_SPLITS = [[2, 3, 2, 2], [2, 2, 1, 2], [1, 2, 1, 2], [1, 2, 1, 1]]
UNEQUAL = [
    [[0, 1], [10, 11, 12], [20, 21], [30, 31]],
    [[2, 3], [13, 14], [22], [32, 33]],
    [[4], [15, 16], [23], [34, 35]],
    [[5], [17, 18], [24], [36]],
]


def _values(tensors: list[Tensor]) -> list[object]:
    return [tensor.tolist() for tensor in tensors]


def equal_parts() -> list[object]:
    given = list((torch.arange(4) + dist.get_rank() * 4).chunk(4))
    output = list(torch.empty([4], dtype=torch.int64).chunk(4))
    assert dist.all_to_all(output, given) is None
    return _values(output)


def unequal_parts() -> list[object]:
    rank = dist.get_rank()
    given = list(torch.tensor(INPUTS[rank]).split(INPUT_SPLITS[rank]))
    output = [torch.empty(size, dtype=torch.int64) for size in OUTPUT_SPLITS[rank]]
    assert dist.all_to_all(output, given) is None
    return _values(output)


def complex_parts() -> list[object]:
    """The documented outputs are int64, which torch refuses too; the dtype of the inputs is what is meant."""
    given = torch.tensor([1 + 1j, 2 + 2j, 3 + 3j, 4 + 4j], dtype=torch.cfloat) + 4 * dist.get_rank() * (1 + 1j)
    output = list(torch.empty([4], dtype=torch.cfloat).chunk(4))
    assert dist.all_to_all(output, list(given.chunk(4))) is None
    return _values(output)


def test_all_to_all_of_equal_parts(run: Run) -> None:
    assert run(equal_parts, 4) == [[[rank + 4 * giver] for giver in range(4)] for rank in range(4)]


def test_all_to_all_of_unequal_parts(run: Run) -> None:
    assert run(unequal_parts, 4) == UNEQUAL


def test_all_to_all_of_complex_parts(run: Run) -> None:
    expected = [[[(1 + rank + 4 * giver) * (1 + 1j)] for giver in range(4)] for rank in range(4)]
    assert run(complex_parts, 4) == expected


def test_all_to_all_is_what_scatter_from_every_rank_would_do(run: Run) -> None:
    def rank() -> None:
        mine, given = dist.get_rank(), list(torch.arange(4.0) + 10 * dist.get_rank())
        scattered = [torch.zeros(()) for _ in range(4)]
        for source in range(4):
            dist.scatter(scattered[source], given if source == mine else [], src=source)
        exchanged = [torch.zeros(()) for _ in range(4)]
        dist.all_to_all(exchanged, given)
        assert exchanged == scattered

    run(rank, 4)


def test_all_gather_and_all_reduce(run: Run) -> None:
    def rank() -> tuple[list[object], object]:
        tensor = torch.arange(2, dtype=torch.int64) + 1 + 2 * dist.get_rank()
        gathered = [torch.zeros(2, dtype=torch.int64) for _ in range(2)]
        dist.all_gather(gathered, tensor)
        dist.all_reduce(tensor, op=dist.ReduceOp.SUM)
        return _values(gathered), tensor.tolist()

    assert run(rank, 2) == [([[1, 2], [3, 4]], [4, 6])] * 2


def test_the_two_forms_of_all_gather_single(run: Run) -> None:
    def rank() -> tuple[object, object]:
        tensor = torch.arange(2) + 1 + 2 * dist.get_rank()
        joined, stacked = torch.zeros(4, dtype=torch.int64), torch.zeros(2, 2, dtype=torch.int64)
        dist.all_gather_single(joined, tensor)
        dist.all_gather_single(stacked, tensor)
        return joined.tolist(), stacked.tolist()

    assert run(rank, 2) == [([1, 2, 3, 4], [[1, 2], [3, 4]])] * 2


def test_the_two_forms_of_reduce_scatter_single(run: Run) -> None:
    def rank() -> tuple[object, object]:
        first, second = torch.zeros(2, dtype=torch.int64), torch.zeros(2, dtype=torch.int64)
        given = torch.arange(4)
        dist.reduce_scatter_single(first, given)
        dist.reduce_scatter_single(second, given.reshape(2, 2))
        return first.tolist(), second.tolist()

    assert run(rank, 2) == [([0, 2], [0, 2]), ([4, 6], [4, 6])]


def test_all_to_all_single_with_sizes_and_without(run: Run) -> None:
    def rank() -> tuple[object, object]:
        mine = dist.get_rank()
        equal = torch.zeros(4, dtype=torch.int64)
        dist.all_to_all_single(equal, torch.arange(4) + mine * 4)
        unequal = torch.zeros(sum(OUTPUT_SPLITS[mine]), dtype=torch.int64)
        dist.all_to_all_single(unequal, torch.tensor(INPUTS[mine]), OUTPUT_SPLITS[mine], INPUT_SPLITS[mine])
        return equal.tolist(), unequal.tolist()

    equal = [[rank + 4 * giver for giver in range(4)] for rank in range(4)]
    unequal = [[value for part in parts for value in part] for parts in UNEQUAL]
    assert run(rank, 4) == list(zip(equal, unequal, strict=True))


def in_a_process() -> list[list[object]]:
    dist.init_process_group("gloo")
    return [equal_parts(), unequal_parts(), complex_parts()]


@pytest.mark.timeout(110)
def test_ranks_that_are_processes_get_the_same() -> None:
    found = collshim.launch(in_a_process, 4, ranks="processes", timeout=90)
    assert [values[1] for values in found] == UNEQUAL
    assert [values[0] for values in found] == [[[rank + 4 * giver] for giver in range(4)] for rank in range(4)]
    assert found[3][2] == [[4 + 4j], [8 + 8j], [12 + 12j], [16 + 16j]]
