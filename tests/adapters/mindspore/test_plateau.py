"""Callbacks that follow a metric or set the learning rate: numbers recorded with MindSpore 2.10.0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import collshim.mindspore as ms
from collshim.mindspore import dataset, nn, train
from collshim.mindspore.communication import get_rank
from collshim.mindspore.train import Model
from tests.adapters.conftest import each_of

X = (np.arange(24).reshape(8, 3) / 24).astype(np.float32)
untyped: Any = train  # calls that the types forbid are tested too


class Rates(train.Callback):
    """Collect the learning rate after every epoch."""

    def __init__(self) -> None:
        self.seen: list[float] = []

    def on_train_epoch_end(self, run_context: Any) -> None:
        self.seen.append(float(run_context.original_args().optimizer.learning_rate))


def data(scale: float = 2.0) -> Any:
    rows = {"x": X, "y": X.sum(1, keepdims=True) * scale}
    return dataset.NumpySlicesDataset(rows, shuffle=False).batch(2)


def model(rate: Any = 0.1, weights: str = "ones") -> Model:
    net = nn.Dense(3, 1, weight_init=weights, bias_init="zeros")
    return Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), rate), metrics={"mae", "loss"})


def fit(epochs: int, *callbacks: Any, rate: Any = 0.1) -> list[float]:
    rates = Rates()
    model(rate).fit(epochs, data(), data(), callbacks=[*callbacks, rates])
    return rates.seen


@pytest.mark.unranked
@pytest.mark.parametrize(
    ("stopping", "epochs"),
    [
        (train.EarlyStopping("loss", patience=1, min_delta=100.0), 2),
        (train.EarlyStopping("loss", patience=2, min_delta=100.0), 3),
        (train.EarlyStopping("eval_loss", patience=2), 5),
        (train.EarlyStopping("nope"), 5),
    ],
)
def test_training_stops_if_a_metric_does_not_improve(stopping: Any, epochs: int) -> None:
    assert len(fit(5, stopping)) == epochs


@pytest.mark.unranked
def test_stopping_restores_the_best_parameters() -> None:
    own = model(3.0)
    own.fit(5, data(), data(), callbacks=[train.EarlyStopping("mae", patience=1, restore_best_weights=True)])
    after = own.eval(data())["mae"]
    own = model(3.0)
    own.train(1, data())
    assert after == own.eval(data())["mae"]


@pytest.mark.unranked
def test_the_learning_rate_falls_with_a_cooldown_to_a_limit() -> None:
    options: dict[str, Any] = {"min_delta": 100.0, "cooldown": 1, "min_lr": 0.03}
    rates = fit(6, train.ReduceLROnPlateau("loss", factor=0.5, patience=1, **options))
    np.testing.assert_allclose(rates, [0.1, 0.05, 0.03, 0.03, 0.03, 0.03], rtol=1e-6)


@pytest.mark.unranked
def test_a_schedule_of_the_learning_rate_is_refused() -> None:
    with pytest.raises(ValueError, match="one learning rate for all steps"):
        fit(2, train.ReduceLROnPlateau("loss"), rate=[0.1] * 50)


@pytest.mark.unranked
def test_a_function_sets_the_learning_rate() -> None:
    halved = train.LearningRateScheduler(lambda rate, step: rate / 2 if step % 2 == 0 else rate)
    np.testing.assert_allclose(fit(2, halved), [0.025, 0.00625], rtol=1e-6)


@pytest.mark.unranked
def test_history_has_each_epoch_of_training() -> None:
    history = train.History()
    fit(2, history)
    assert history.epoch == {"epoch": [1, 2]}
    np.testing.assert_allclose(history.history["net_output"], [1.898686, 0.304418], rtol=1e-5)
    np.testing.assert_allclose(history.history["mae"], [0.383241, 0.352611], rtol=1e-5)


@pytest.mark.unranked
def test_the_loss_of_an_evaluation_in_fit_is_that_of_the_last_batch() -> None:
    following = train.ReduceLROnPlateau("eval_loss", patience=5, mode="max")
    fit(1, following)
    np.testing.assert_allclose(following.best, 0.250376, rtol=1e-5)


@pytest.mark.unranked
def test_sinking_sets_the_number_of_batches_that_callbacks_read() -> None:
    seen = []
    own = train.LambdaCallback(on_train_step_end=lambda context: seen.append(context.original_args().batch_num))
    model().train(1, data(), callbacks=[own], dataset_sink_mode=True, sink_size=2)
    assert seen == [2, 2, 2, 2]


@pytest.mark.unranked
@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: untyped.EarlyStopping(5), TypeError),
        (lambda: untyped.EarlyStopping(min_delta="a"), TypeError),
        (lambda: untyped.EarlyStopping(patience=-1), ValueError),
        (lambda: untyped.EarlyStopping(verbose=1), TypeError),
        (lambda: untyped.EarlyStopping(mode="foo"), ValueError),
        (lambda: untyped.ReduceLROnPlateau(factor=1), TypeError),
        (lambda: untyped.ReduceLROnPlateau(factor=1.0), ValueError),
        (lambda: untyped.ReduceLROnPlateau(cooldown=-1), ValueError),
        (lambda: untyped.ReduceLROnPlateau(min_lr="a"), TypeError),
    ],
)
def test_wrong_arguments_are_refused(make: Callable[[], Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        make()


@each_of(2, gives=[2, 2])
def test_all_ranks_stop_at_the_mean_of_their_metrics() -> int:
    ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
    rates = Rates()
    stopping = train.EarlyStopping("mae", patience=1, mode="max")
    model().fit(5, data(), data(2.0 + get_rank()), callbacks=[stopping, rates])
    ms.reset_auto_parallel_context()
    return len(rates.seen)


@each_of(2, gives=[3, 3])
def test_metric_that_is_zero_on_one_rank_counts() -> int:
    ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
    rates = Rates()
    stopping = train.EarlyStopping("mae", patience=2, mode="min")
    model(0.0, "zeros").fit(5, data(0.0), data(float(get_rank())), callbacks=[stopping, rates])
    ms.reset_auto_parallel_context()
    return len(rates.seen)
