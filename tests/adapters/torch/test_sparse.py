"""all_reduce of sparse tensors."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import collshim.errors
import collshim.torch.distributed as dist
from tests.adapters.conftest import Refused, each_of


def _sparse(indices: list[int], values: list[float], size: int = 4) -> torch.Tensor:
    return torch.sparse_coo_tensor(torch.tensor([indices]), torch.tensor(values), (size,), check_invariants=True)


@pytest.mark.ranks(3)
def test_ranks_sum_elements_that_others_lack() -> None:
    given = {0: ([0, 2, 2], [1.0, 2.0, 3.0]), 1: ([2], [10.0]), 2: ([], [])}[dist.get_rank()]
    work = dist.all_reduce(tensor := _sparse(*given), async_op=True)
    assert work is not None
    assert work.wait()
    assert (tensor.is_coalesced(), tensor.indices().tolist(), tensor.values().tolist()) == (True, [[0, 2]], [1.0, 15.0])


@each_of(2, gives=[1.0, 1.0])
def test_different_shapes_are_an_error_on_every_rank() -> Any:
    tensor = _sparse([0], [1.0], 4 + dist.get_rank())
    with pytest.raises(collshim.errors.MismatchError, match="shapes differ"):
        dist.all_reduce(tensor)
    return tensor.to_dense()[0].item()


@pytest.mark.ranks(1)
def test_only_sum_is_supported(refused: Refused) -> None:
    refused(RuntimeError, lambda: dist.all_reduce(_sparse([0], [1.0]), dist.ReduceOp.MAX), "should be sum")
    refused(RuntimeError, lambda: dist.broadcast(_sparse([0], [1.0]), 0), "dense")
