"""Calls of layers, initializers and datasets that MindSpore 2.10.0 refuses, and the phase of a Cell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from collshim.mindspore import Tensor, dataset, nn
from collshim.mindspore.common.initializer import initializer

pytestmark = pytest.mark.unranked

X = Tensor(np.arange(24, dtype=np.float32).reshape(2, 3, 4))
IMAGES = Tensor(np.ones((2, 3, 2, 2), np.float32))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: nn.LayerNorm((3, 4))(X), ValueError),
        (lambda: nn.LayerNorm((3, 4), 1, -1)(X), ValueError),
        (lambda: nn.LayerNorm((5,))(X), ValueError),
        (lambda: nn.LayerNorm((4,), -2)(X), RuntimeError),
        (lambda: nn.LayerNorm((4,), 3)(X), RuntimeError),
        (lambda: nn.BatchNorm2d(4)(IMAGES), ValueError),
        (lambda: nn.BatchNorm2d(4).set_train()(IMAGES), ValueError),
        (lambda: initializer("ones", [-1]), ValueError),
        (lambda: initializer("ones", ["a"]), ValueError),
        (lambda: initializer("ones", [0]), ValueError),
        (lambda: initializer("identity", [4]), ValueError),
        (lambda: dataset.NumpySlicesDataset([]), ValueError),
        (lambda: dataset.NumpySlicesDataset({}), ValueError),
        (lambda: setattr(nn.ReLU(), "phase", 5), TypeError),
    ],
)
def test_a_wrong_call_is_refused(call: Callable[[], Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        call()


def test_an_identity_has_ones_on_its_diagonal() -> None:
    np.testing.assert_array_equal(initializer("identity", [3, 2]).asnumpy(), np.eye(3, 2))


def test_a_cell_is_in_the_phase_train_until_it_is_told() -> None:
    outer = nn.SequentialCell([nn.ReLU()])
    assert outer.phase == "train"
    outer.set_train(False)
    assert (outer.phase, outer[0].phase) == ("predict", "train")
    outer.phase = "prefill"
    assert outer.phase == "prefill"
