"""collshim.oneflow: its names, signatures, ranks and constructors; the world of one; ranks that are processes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import collshim
import collshim.oneflow as flow


def test_constructors_are_those_of_torch() -> None:
    assert torch.equal(flow.tensor([[1, 2]], dtype=flow.int32), torch.tensor([[1, 2]], dtype=torch.int32))
    assert torch.equal(flow.zeros(2, 3), torch.zeros(2, 3))
    assert torch.equal(flow.zeros((2, 3), dtype=flow.int64), torch.zeros(2, 3, dtype=torch.int64))
    assert torch.equal(flow.ones([2], device="cpu"), torch.ones(2))
    assert torch.equal(flow.ones(()), torch.ones(()))
    assert torch.equal(flow.arange(3), torch.arange(3))
    assert torch.equal(flow.arange(1, 7, 2), torch.arange(1, 7, 2))
    assert flow.tensor([1.0], requires_grad=True).requires_grad
    assert isinstance(flow.tensor([1]), flow.Tensor)


@pytest.mark.parametrize("make", [flow.zeros, flow.ones])
def test_lengths_may_mix_numpy_integers(make: Any) -> None:
    assert make(2, np.int64(3)).shape == make((2, np.int64(3))).shape == (2, 3)
    assert make(True).shape == (1,)


@pytest.mark.parametrize("make", [flow.zeros, flow.ones])
@pytest.mark.parametrize("size", [2.5, np.int64(3), "a", None, [2.5], [[2]], range(3), np.array([2, 3])])
def test_invalid_shape_is_a_type_error(make: Any, size: Any) -> None:
    with pytest.raises(TypeError, match=r"constant\(\): argument 'shape' must be shape") as caught:
        make(size)
    assert isinstance(caught.value, collshim.ArgumentError)


@pytest.mark.parametrize("make", [flow.zeros, flow.ones])
@pytest.mark.parametrize("sizes", [((2,), 3), ([2], [3]), (2, 2.5), ()])
def test_invalid_size_arguments_are_an_assertion_error(make: Any, sizes: Any) -> None:
    with pytest.raises(AssertionError, match="shape should be specified by tuple of int size") as caught:
        make(*sizes)
    assert isinstance(caught.value, collshim.ArgumentError)
