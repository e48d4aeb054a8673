"""Calls of the communication primitives that MindSpore 2.10.0 refuses, with its classes of errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from collshim.mindspore import Tensor, ops
from collshim.mindspore.mint import distributed as dist
from tests.adapters.conftest import Refused, Run

primitives: Any = ops  # calls that the types forbid are tested too
X = Tensor(np.ones((2, 4), np.float32))
FLAT = Tensor(np.ones(4, np.float32))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        *((lambda axis=axis: ops.AlltoAll(2, axis, 1)(X), IndexError) for axis in (5, 2, -3)),
        *((lambda axis=axis: ops.AlltoAll(2, 0, axis)(X), IndexError) for axis in (5, 2, -3)),
        (lambda: ops.AlltoAll(3, 0, 1)(X), ValueError),
        (lambda: ops.AlltoAll(2, 0, 1)(Tensor(np.ones((3, 4), np.float32))), ValueError),
        (lambda: primitives.AllReduce()(input_x=FLAT), TypeError),
        (lambda: primitives.AllGather()(input_x=FLAT), TypeError),
        (lambda: primitives.AllReduce()(), ValueError),
        (lambda: primitives.Broadcast(0)(), RuntimeError),
        (lambda: primitives.AlltoAllV()(FLAT), RuntimeError),
        (lambda: primitives.AlltoAllVC()(FLAT), RuntimeError),
        (lambda: primitives.AllGatherV()(FLAT), RuntimeError),
        (lambda: primitives.ReduceScatterV()(FLAT), RuntimeError),
        (lambda: primitives.Barrier()(1), TypeError),
        (lambda: primitives.AlltoAllV()(FLAT, 2, 2), RuntimeError),
        (lambda: primitives.AllGatherV()(FLAT, ["a", 1]), RuntimeError),
        (lambda: primitives.AlltoAllVC()(FLAT, ["a"]), TypeError),
        (lambda: dist.new_group([0, -1]), TypeError),
    ],
)
def test_a_wrong_call_is_refused(run: Run, refused: Refused, call: Callable[[], Any], error: type[Exception]) -> None:
    assert all(run(lambda: refused(error, call), 2))
