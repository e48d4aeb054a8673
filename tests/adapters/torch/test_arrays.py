"""NumPy arrays and other kinds are accepted in place of every tensor, and written in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import collshim.torch.distributed as dist
from tests.adapters.conftest import Refused


@pytest.mark.ranks(2)
def test_array_kinds_can_be_mixed() -> None:
    mine: Any = torch.ones(2) if dist.get_rank() else np.ones(2, np.float32)
    output: list[Any] = [np.zeros(2, np.float32), torch.zeros(2)]
    dist.all_gather(output, mine)
    assert [array.tolist() for array in output] == [[1.0, 1.0], [1.0, 1.0]]


@pytest.mark.ranks(2)
def test_read_only_output_is_refused(refused: Refused) -> None:
    fixed = np.zeros(2)
    fixed.flags.writeable = False
    refused(RuntimeError, lambda: dist.all_reduce(fixed), "read-only")
    refused(ValueError, lambda: dist.all_gather_single(fixed, np.zeros(1)), "read-only")
    refused(RuntimeError, lambda: dist.all_reduce(np.zeros(2)[::-1]), "negative strides")
    refused(RuntimeError, lambda: dist.broadcast(torch.zeros(1).expand(2), 0), "expanded")
