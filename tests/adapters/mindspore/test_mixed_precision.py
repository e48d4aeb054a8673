"""``amp``, scales of losses, and steps that are skipped after an overflow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import collshim.mindspore as ms
import collshim.mindspore.dataset as ds
from collshim.mindspore import Tensor, amp, nn
from collshim.mindspore.communication import get_rank
from collshim.mindspore.train import Model
from tests.adapters.conftest import Run

pytestmark = pytest.mark.unranked

untyped: Any = amp  # calls that the types forbid are tested too
DATA = np.array([[1.0, 2.0], [3.0, -1.0]], np.float32)
LABELS = np.array([[1.0], [0.0]], np.float32)


def network() -> nn.Cell:
    return nn.Dense(2, 1, Tensor(np.array([[0.1, 0.3]], np.float32)), "zeros")


def sgd(net: nn.Cell, loss_scale: float = 1.0) -> nn.Optimizer:
    return nn.SGD(net.trainable_params(), 0.1, loss_scale=loss_scale)


def weight_after(make: Callable[[nn.Cell], nn.Cell]) -> list[float]:
    net = network()
    make(net)(Tensor(DATA), Tensor(LABELS))
    found: list[float] = net.weight.asnumpy()[0].tolist()
    return found


def plain(net: nn.Cell) -> nn.Cell:
    return nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), sgd(net))


def scaled(net: nn.Cell, scale: Any) -> nn.Cell:
    return nn.TrainOneStepWithLossScaleCell(nn.WithLossCell(net, nn.MSELoss()), sgd(net), scale)


@pytest.mark.parametrize("scale", [Tensor(8.0), nn.FixedLossScaleUpdateCell(8), nn.DynamicLossScaleUpdateCell(8, 2, 1)])
def test_a_step_with_a_scaled_loss_ends_with_the_same_weights(scale: Any) -> None:
    assert weight_after(lambda net: scaled(net, scale)) == pytest.approx(weight_after(plain))


def test_an_overflow_skips_the_step_and_halves_the_scale() -> None:
    net = network()
    step = scaled(net, nn.DynamicLossScaleUpdateCell(8, 2, 2))
    _, overflow, scale = step(Tensor(DATA * np.inf), Tensor(LABELS))
    assert (bool(overflow), float(scale), float(step.scale_sense)) == (True, 8.0, 4.0)
    np.testing.assert_allclose(net.weight.asnumpy(), [[0.1, 0.3]])
    scales = [float(step(Tensor(DATA), Tensor(LABELS))[2]) for _ in range(3)]
    assert scales == [4.0, 4.0, 8.0]


def test_all_ranks_skip_a_step_in_which_one_overflows(run: Run) -> None:
    def work() -> list[float]:
        ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
        data = DATA * np.inf if get_rank() == 1 else DATA
        net = network()
        overflow = scaled(net, Tensor(8.0))(Tensor(data), Tensor(LABELS))[1]
        return [bool(overflow), *net.weight.asnumpy()[0].tolist()]

    for found in run(work, 2):
        assert found == pytest.approx([True, 0.1, 0.3])


def test_managers_update_their_scale_like_mindspore() -> None:
    manager = ms.DynamicLossScaleManager(8, 2, 3)
    scales = []
    for overflow in (False, False, False, True, True, False):
        manager.update_loss_scale(overflow)
        scales.append(manager.get_loss_scale())
    assert scales == [8, 8, 16, 8.0, 4.0, 4.0]
    assert ms.FixedLossScaleManager(4, False).get_update_cell() is None


@pytest.mark.parametrize(
    ("level", "products_are_rounded", "rest_is_rounded"),
    [("O0", False, False), ("O1", True, False), ("auto", True, False), ("O2", True, True), ("O3", True, True)],
)
def test_a_level_says_what_is_computed_in_float16(
    level: str, products_are_rounded: bool, rest_is_rounded: bool
) -> None:
    class Sum(nn.Cell):
        def construct(self, x: Any) -> Any:
            return x + 1e-4

    fine = Tensor(np.full((1, 2), 1 / 3, np.float32))
    exact, product = network()(fine), amp.auto_mixed_precision(network(), level)(fine)
    total = amp.auto_mixed_precision(Sum(), level)(Tensor(np.array([1.0], np.float32)))
    assert product.dtype == total.dtype == ms.float32
    assert bool((product != exact).any()) is products_are_rounded
    assert (float(total) == 1.0) is rest_is_rounded


def test_o2_normalizes_in_float32() -> None:
    values = Tensor(np.array([[1.0], [1.0001]], np.float32))
    outputs = amp.auto_mixed_precision(nn.SequentialCell(nn.BatchNorm1d(1)), "O2").set_train()
    assert outputs(values.astype(ms.float32)).asnumpy().std() < 1


def rows() -> ds.Dataset:
    return ds.NumpySlicesDataset({"x": DATA, "y": LABELS}, shuffle=False).batch(2)


def test_a_model_divides_the_scaled_loss_in_its_optimizer() -> None:
    net = network()
    manager = ms.FixedLossScaleManager(16, drop_overflow_update=False)
    Model(net, nn.MSELoss(), sgd(net, 16.0), loss_scale_manager=manager).train(1, rows())
    assert net.weight.asnumpy()[0].tolist() == pytest.approx(weight_after(plain))


def test_a_model_with_a_dynamic_scale_needs_another_device_than_the_cpu() -> None:
    net = network()
    with pytest.raises(ValueError, match="supported on device `CPU`"):
        Model(net, nn.MSELoss(), sgd(net), amp_level="O2")
    ms.set_context(device_target="Ascend")
    try:
        model = Model(net, nn.MSELoss(), sgd(net), amp_level="O2", loss_scale_manager=ms.DynamicLossScaleManager(8))
        model.train(1, rows())
    finally:
        ms.set_context(device_target="CPU")
    assert net.weight.asnumpy()[0].tolist() == pytest.approx(weight_after(plain), rel=1e-2)
    assert net.weight.dtype is ms.float32


def test_scalers_keep_the_dtypes_and_update_the_scale() -> None:
    scaler = amp.DynamicLossScaler(4.0, 2, 2)
    (half,) = scaler.unscale([Tensor([4.0], ms.float16)])
    assert (half.dtype, half.asnumpy().tolist(), float(scaler.scale(Tensor(3.0)))) == (ms.float16, [1.0], 12.0)
    scales = []
    for finite in (False, True, True):
        assert scaler.adjust(Tensor(finite)) is True
        scales.append(float(scaler.scale_value))
    assert scales == [2.0, 2.0, 4.0]
    assert amp.StaticLossScaler(2).adjust(True) is False
    assert not bool(amp.all_finite([Tensor([1.0]), Tensor([np.nan])]))


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: amp.StaticLossScaler(0.5), ValueError),
        (lambda: untyped.StaticLossScaler("a"), TypeError),
        (lambda: amp.DynamicLossScaler(4, 0, 2), ValueError),
        (lambda: untyped.DynamicLossScaler(4, 2, 2.5), TypeError),
        (lambda: amp.auto_mixed_precision(network(), "O9"), ValueError),
        (lambda: untyped.auto_mixed_precision(5, "O1"), TypeError),
        (lambda: amp.auto_mixed_precision(network(), "O2", ms.float32), ValueError),
        (lambda: amp.custom_mixed_precision(network()), ValueError),
        (lambda: amp.build_train_network(network(), 5), TypeError),
        (lambda: ms.FixedLossScaleManager(0), ValueError),
        (lambda: ms.DynamicLossScaleManager(8, 2, 0), ValueError),
        (lambda: scaled(network(), 4), TypeError),
        (lambda: scaled(network(), Tensor([4.0, 1.0])), ValueError),
        (lambda: Model(network(), optimizer=sgd(network()), loss_scale_manager=5), TypeError),
        (lambda: Model(network(), foo=1), ValueError),
        (lambda: Model(network(), amp_level="O7"), ValueError),
    ],
)
def test_wrong_arguments_are_refused(make: Callable[[], Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        make()
