"""Slices with negative steps: as in MindSpore 2.10.0 on CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from collshim import mindspore as ms
from collshim.mindspore import Parameter, Tensor, ops

pytestmark = pytest.mark.unranked

VALUES = np.arange(6, dtype=np.float32).reshape(2, 3)
BACKWARDS = slice(None, None, -1)


@pytest.mark.parametrize(
    "index",
    [
        BACKWARDS,
        (slice(None), BACKWARDS),
        slice(1, None, -1),
        (slice(None), slice(2, 0, -1)),
        (slice(None), slice(-1, -3, -1)),
        slice(None, None, -2),
        slice(0, 1, -1),
        (Ellipsis, BACKWARDS),
        (None, BACKWARDS),
        (BACKWARDS, 0),
        (BACKWARDS, BACKWARDS),
        (BACKWARDS, [0, 2, 1]),
        ([True, False], BACKWARDS),
    ],
)
def test_slices_go_backwards(index: Any) -> None:
    found = Tensor(VALUES)[index]
    assert type(found) is Tensor
    assert found.asnumpy().tolist() == VALUES[index].tolist()


def test_a_parameter_and_a_result_can_be_read_backwards() -> None:
    assert Parameter(VALUES)[::-1].asnumpy().tolist() == VALUES[::-1].tolist()
    assert ops.relu(Tensor(VALUES))[::-1].asnumpy().tolist() == VALUES[::-1].tolist()


@pytest.mark.parametrize("kind", [Tensor, Parameter])
def test_values_are_written_backwards(kind: Any) -> None:
    tensor, expected = kind(VALUES), VALUES.copy()
    tensor[:, 2:0:-1] = Tensor(-VALUES[:, :2])
    expected[:, 2:0:-1] = -VALUES[:, :2]
    assert tensor.asnumpy().tolist() == expected.tolist()
    tensor[1::-1, 0] = 9
    assert tensor.asnumpy()[:, 0].tolist() == [9, 9]


def test_gradients_reach_the_elements_that_were_read() -> None:
    weights = Tensor(np.arange(1, 7, dtype=np.float32).reshape(2, 3))
    found = ms.grad(lambda x: (x[::-1, ::-1] * weights).sum())(Tensor(VALUES))
    assert found.asnumpy().tolist() == [[6, 5, 4], [3, 2, 1]]
