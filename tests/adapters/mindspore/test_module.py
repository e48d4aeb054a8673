"""collshim.mindspore: the tensors that it makes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import collshim.mindspore as ms


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (1.0, torch.float32),
        ([1, 2], torch.int64),
        (np.ones(2), torch.float64),
        (np.ones(2, np.int16), torch.int16),
    ],
)
def test_tensor_makes_a_torch_tensor_of_the_same_dtype(data: Any, dtype: torch.dtype) -> None:
    tensor: Any = ms.Tensor(data)
    assert type(tensor) is ms.Tensor
    assert tensor.dtype is dtype
    assert isinstance(tensor, ms.Tensor)
    assert not isinstance(data, ms.Tensor)


def test_tensor_takes_a_dtype_and_copies() -> None:
    array = np.ones(2, np.float32)
    tensor: Any = ms.Tensor(array, ms.int32)
    same: Any = ms.Tensor(array)
    array[0] = 5
    assert tensor.tolist() == same.tolist() == [1, 1]
    assert tensor.dtype is torch.int32
