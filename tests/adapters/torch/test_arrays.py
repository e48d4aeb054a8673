"""NumPy arrays and other kinds wherever a tensor is taken: written in place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

import collshim.torch.distributed as dist

if TYPE_CHECKING:
    from tests.adapters.torch.conftest import Refused, Run


def test_numpy_arrays_are_written_in_place(run: Run) -> None:
    def rank() -> Any:
        mine = np.arange(2.0) + dist.get_rank()
        gathered, joined = [np.zeros(2), np.zeros(2)], np.zeros((2, 2))
        dist.all_gather(gathered, mine)
        dist.all_gather_single(joined, mine)
        dist.all_reduce(mine)
        exchanged = np.zeros(2)
        dist.all_to_all_single(exchanged, mine[::-1])
        return [np.array(array).tolist() for array in (mine, gathered, joined, exchanged)]

    both = [[0.0, 1.0], [1.0, 2.0]]
    assert run(rank, 2) == [[[1.0, 3.0], both, both, [3.0, 3.0]], [[1.0, 3.0], both, both, [1.0, 1.0]]]


def test_kinds_may_be_mixed_in_a_call_and_between_ranks(run: Run) -> None:
    def rank() -> Any:
        mine: Any = torch.ones(2) if dist.get_rank() else np.ones(2, np.float32)
        output: list[Any] = [np.zeros(2, np.float32), torch.zeros(2)]
        dist.all_gather(output, mine)
        return [array.tolist() for array in output]

    assert run(rank, 2) == [[[1.0, 1.0], [1.0, 1.0]]] * 2


def test_point_to_point_takes_arrays(run: Run) -> None:
    def rank() -> Any:
        if dist.get_rank() == 0:
            return dist.send(np.arange(6.0)[::-2], 1)
        dist.recv(array := np.zeros(3), 0)
        return array.tolist()

    assert run(rank, 2)[1] == [5.0, 3.0, 1.0]


def test_what_cannot_be_written_is_refused(run: Run, refused: Refused) -> None:
    def rank() -> None:
        fixed = np.zeros(2)
        fixed.flags.writeable = False
        refused(RuntimeError, lambda: dist.all_reduce(fixed), "read-only")
        refused(ValueError, lambda: dist.all_gather_single(fixed, np.zeros(1)), "read-only")
        refused(RuntimeError, lambda: dist.all_reduce(np.zeros(2)[::-1]), "negative strides")
        refused(RuntimeError, lambda: dist.all_reduce(torch.zeros(1).expand(2)), "expanded")

    run(rank, 2)


@pytest.mark.parametrize("given", ["text", 3, None, object()])
def test_what_is_no_array_is_a_type_error_in_torchs_words(run: Run, refused: Refused, given: Any) -> None:
    wanted = "Expected parameter `tensor` of type torch.Tensor"
    run(lambda: refused(TypeError, lambda: dist.all_reduce(given), wanted), 1)
