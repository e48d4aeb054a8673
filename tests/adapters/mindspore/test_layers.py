"""Layers, losses and learning rates: values and texts that the real MindSpore 2.10.0 returned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from collshim.mindspore import Tensor, nn

pytestmark = pytest.mark.unranked

X = Tensor(np.linspace(-1, 1, 6).reshape(2, 3).astype(np.float32))
untyped: Any = nn  # calls that the types forbid are tested too
LABELS = Tensor(np.array([[0, 1, 0], [1, 0, 0]], np.float32))
IMAGES = Tensor(np.linspace(-1, 1, 2 * 4 * 4 * 4).reshape(2, 4, 4, 4).astype(np.float32))


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        (nn.FastGelu, [[-0.1542042, -0.1588762, -0.0831425], [0.1168575, 0.4411238, 0.8457958]]),
        (nn.HSwish, [[-0.3333333, -0.24, -0.0933333], [0.1066667, 0.36, 0.6666667]]),
        (nn.HSigmoid, [[0.3333333, 0.4, 0.4666667], [0.5333333, 0.6, 0.6666667]]),
        (nn.Mish, [[-0.303401, -0.246936, -0.1071448], [0.132599, 0.4661365, 0.8650984]]),
        (nn.LogSigmoid, [[-1.3132608, -1.0374877, -0.7981385], [-0.5981386, -0.4374879, -0.3132612]]),
        (nn.Softsign, [[-0.5, -0.375, -0.1666667], [0.1666667, 0.375, 0.5]]),
        (lambda: nn.CELU(2.0), [[-0.7869387, -0.5183636, -0.1903252], [0.2, 0.6, 1]]),
        (lambda: nn.HShrink(0.3), [[-1, -0.6, 0], [0, 0.6, 1]]),
        (lambda: nn.SoftShrink(0.3), [[-0.7, -0.3, 0], [0, 0.3, 0.7]]),
        (lambda: nn.Hardtanh(-0.5, 0.4), [[-0.5, -0.5, -0.2], [0.2, 0.4, 0.4]]),
        (nn.PReLU, [[-0.25, -0.15, -0.05], [0.2, 0.6, 1]]),
        (lambda: nn.PReLU(3, [0.1, 0.2, 0.3]), [[-0.1, -0.12, -0.06], [0.2, 0.6, 1]]),
        (lambda: nn.get_activation("hswish"), [[-0.3333333, -0.24, -0.0933333], [0.1066667, 0.36, 0.6666667]]),
    ],
)
def test_activation(layer: Callable[[], Any], expected: Any) -> None:
    np.testing.assert_allclose(layer()(X).asnumpy(), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (nn.MAELoss, 0.8666667),
        (nn.RMSELoss, 0.9660918),
        (nn.HuberLoss, 0.4366667),
        (lambda: nn.HuberLoss("none", 0.5), [[0.375, 0.675, 0.02], [0.275, 0.175, 0.375]]),
        (lambda: nn.KLDivLoss("batchmean"), 0.2),
        (lambda: nn.KLDivLoss("none"), [[0, 0.6, 0], [-0.2, 0, 0]]),
    ],
)
def test_loss(loss: Callable[[], Any], expected: Any) -> None:
    np.testing.assert_allclose(loss()(X, LABELS).asnumpy(), expected, atol=1e-6)


def test_dice_loss_adds_its_constant_to_the_divisor() -> None:
    assert float(nn.DiceLoss(0.5)(X.abs(), LABELS)) == pytest.approx(0.6981132)


def test_group_norm_normalizes_each_group_of_a_row() -> None:
    layer = nn.GroupNorm(2, 4, affine=False)
    found = layer(IMAGES).asnumpy().reshape(2, 2, -1)
    np.testing.assert_allclose([found.mean(-1), found.std(-1)], [np.zeros((2, 2)), np.ones((2, 2))], atol=1e-3)
    assert [parameter.name for parameter in layer.get_parameters()] == ["gamma", "beta"]
    assert (layer.trainable_params(), repr(layer)) == ([], "GroupNorm(num_groups=2, num_channels=4)")


def test_a_cell_dict_owns_its_cells_by_name() -> None:
    cells = nn.CellDict({"a": nn.ReLU(), "b": nn.Dense(3, 2)})
    cells.update([["c", nn.Tanh()]])
    del cells["a"]
    assert (len(cells), list(cells), "b" in cells) == (2, ["b", "c"], True)
    assert [parameter.name for parameter in cells.get_parameters()] == ["b.weight", "b.bias"]
    assert isinstance(cells.pop("c"), nn.Tanh)
    with pytest.raises(KeyError):
        cells["c"]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (nn.natural_exp_decay_lr(0.1, 0.9, 6, 2, 1), [0.1, 0.1, 0.040657, 0.040657, 0.0165299, 0.0165299]),
        (nn.natural_exp_decay_lr(0.1, 0.9, 6, 2, 2, True), [0.1] * 4 + [0.0165299] * 2),
        (nn.inverse_decay_lr(0.1, 0.5, 6, 2, 1), [0.1, 0.1, 0.0666667, 0.0666667, 0.05, 0.05]),
        (nn.inverse_decay_lr(0.1, 0.5, 6, 2, 2, True), [0.1] * 4 + [0.0666667] * 2),
    ],
)
def test_learning_rates(found: list[float], expected: list[float]) -> None:
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: nn.PReLU(0), ValueError),
        (lambda: untyped.DistributedGradReducer([], degree="a"), ValueError),
        (lambda: nn.DistributedGradReducer([], degree=0), ValueError),
        (lambda: untyped.PReLU("a"), TypeError),
        (lambda: nn.Hardtanh(1, 0), ValueError),
        (lambda: nn.GroupNorm(3, 4), ValueError),
        (lambda: nn.GroupNorm(0, 4), ValueError),
        (lambda: nn.GroupNorm(2, 4)(X), ValueError),
        (lambda: nn.HuberLoss("x"), ValueError),
        (lambda: nn.RMSELoss()(X, 1), TypeError),
        (lambda: nn.DiceLoss()(X, X[0]), ValueError),
        (lambda: nn.CellDict({"a": 1}), TypeError),
        (lambda: nn.CellDict({1: nn.ReLU()}), TypeError),
        (lambda: nn.natural_exp_decay_lr(1, 0.9, 6, 2, 1), TypeError),
    ],
)
def test_wrong_arguments_are_refused(make: Callable[[], Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        make()
