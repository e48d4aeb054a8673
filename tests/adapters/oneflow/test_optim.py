"""flow.optim matches OneFlow 0.9.0 on a CPU bitwise; its schedules."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import collshim
import collshim.oneflow as flow

schedules = flow.optim.lr_scheduler

# Optimizer, options, and three weights after three steps.
STEPS: list[tuple[str, dict[str, Any], list[float]]] = [
    ("SGD", {}, [1.0977799892425537, -0.6961000561714172, 0.2999798357486725]),
    ("SGD", {"lr": 0.1}, [0.8779999613761902, -0.3100000023841858, 0.2979833483695984]),
    ("SGD", {"lr": 0.1, "weight_decay": 0.1}, [0.8468052744865417, -0.29309624433517456, 0.28910043835639954]),
    ("SGD", {"lr": 0.1, "momentum": 0.9}, [0.7481299638748169, 0.02929997444152832, 0.295607328414917]),
    (
        "SGD",
        {"lr": 0.1, "momentum": 0.9, "nesterov": True},
        [0.5613170266151428, 0.3463699221611023, 0.29402995109558105],
    ),
    (
        "SGD",
        {"lr": 0.1, "momentum": 0.9, "dampening": 0.3},
        [0.8536909818649292, -0.18949000537395477, 0.2969251275062561],
    ),
    (
        "SGD",
        {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1},
        [0.6890892386436462, 0.06200772523880005, 0.2789682447910309],
    ),
    (
        "SGD",
        {"lr": 0.1, "momentum": 0.9, "maximize": True},
        [1.451870083808899, -1.4292998313903809, 0.3043926954269409],
    ),
    ("Adam", {}, [1.0970767736434937, -0.6970000267028809, 0.2971946597099304]),
    ("Adam", {"lr": 0.1, "weight_decay": 0.1}, [0.804951548576355, -0.4000706076622009, 0.014532521367073059]),
    ("Adam", {"lr": 0.1, "amsgrad": True}, [0.8076797723770142, -0.3999979794025421, 0.019464626908302307]),
    ("Adam", {"lr": 0.1, "do_bias_correction": False}, [-0.1006312370300293, 0.5362184047698975, -0.8445776700973511]),
    ("AdamW", {"lr": 0.1}, [0.8076797723770142, -0.3999979794025421, 0.019464626908302307]),
    ("AdamW", {"lr": 0.1, "weight_decay": 0.1}, [0.7779638767242432, -0.3821972608566284, 0.013476517982780933]),
]


@pytest.mark.parametrize(("name", "options", "wanted"), STEPS)
def test_optimizer_steps_match_oneflow_bitwise(name: str, options: dict[str, Any], wanted: list[float]) -> None:
    weights = flow.nn.Parameter(flow.tensor([1.1, -0.7, 0.3]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        optimizer = getattr(flow.optim, name)([weights], **options)
    for step in range(1, 4):
        weights.grad = flow.tensor([0.37 * step, -1.3, 0.011 / step])
        optimizer.step()
    assert weights.tolist() == wanted


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"alpha": 0.9}, [0.2389943, 0.0377381, -0.2619119]),
        ({"centered": True}, [-1.6224291, 1.6101429, -1.4431889]),
        ({"weight_decay": 0.1}, [-1.5038409, 1.5256752, -0.0877810]),
        ({"eps": 0.01, "centered": True, "weight_decay": 0.1}, [-0.5629060, 1.2293355, 0.2012801]),
    ],
)
def test_rmsprop_adds_eps_before_the_root(options: dict[str, Any], wanted: list[float]) -> None:
    weights = flow.nn.Parameter(flow.tensor([1.1, -0.7, 0.3]))
    optimizer = flow.optim.RMSprop([weights], lr=0.1, **options)
    for step in range(1, 4):
        weights.grad = flow.tensor([0.37 * step, -1.3, 0.011 / step])
        optimizer.step()
    assert weights.tolist() == pytest.approx(wanted, abs=2e-7)


@pytest.mark.parametrize(
    ("name", "rate"),
    [("SGD", 0.001), ("Adam", 0.001), ("AdamW", 0.001), ("Adagrad", 0.001), ("RMSprop", 0.001), ("Adadelta", 1.0)],
)
def test_default_learning_rates_match_oneflow(name: str, rate: float) -> None:
    optimizer = getattr(flow.optim, name)(flow.nn.Linear(1, 1).parameters())
    assert optimizer.param_groups[0]["lr"] == rate
    assert optimizer.param_groups[0]["weight_decay"] == 0


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad", "RMSprop", "Adadelta"])
def test_zero_grad_zeroes_and_a_step_lowers_the_loss(name: str) -> None:
    layer = flow.nn.Linear(2, 1)
    optimizer = getattr(flow.optim, name)(layer.parameters())
    losses = []
    for _ in range(2):
        loss = (layer(flow.ones(1, 2)) - 5).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[1] < losses[0]
    optimizer.zero_grad()
    assert layer.weight.grad.tolist() == [[0.0, 0.0]]
    optimizer.zero_grad(set_to_none=True)
    assert layer.weight.grad is None


def test_closure_computes_the_gradients() -> None:
    weight = flow.nn.Parameter(flow.tensor([2.0]))
    optimizer = flow.optim.SGD([weight], lr=0.5)

    def closure() -> Any:
        loss = weight.square().sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 4.0
    assert weight.tolist() == [0.0]


def test_parameter_group_clips_its_gradient_norm() -> None:
    weight = flow.nn.Parameter(flow.tensor([3.0, 4.0]))
    group = {"params": [weight], "clip_grad_max_norm": 1.0, "clip_grad_norm_type": 2.0}
    optimizer = flow.optim.SGD([group], lr=1.0)
    weight.grad = flow.tensor([3.0, 4.0])
    optimizer.clip_grad()
    assert weight.grad.norm().item() == pytest.approx(1.0, rel=1e-5)
    with pytest.warns(UserWarning, match="no clip_grad_max_norm"):
        flow.optim.SGD([weight]).clip_grad()


def test_state_can_be_carried_over() -> None:
    weight = flow.nn.Parameter(flow.tensor([1.0]))
    first, second = (flow.optim.SGD([weight], lr=0.1, momentum=0.9) for _ in range(2))
    weight.grad = flow.tensor([1.0])
    first.step()
    second.load_state_dict(first.state_dict())
    second.step()
    assert weight.item() == pytest.approx(1 - 0.1 - 0.19)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {"lr": -1.0}),
        ("SGD", {"momentum": -0.1}),
        ("Adam", {"betas": (1.0, 0.9)}),
        ("RMSprop", {"momentum": 0.9}),
    ],
)
def test_out_of_range_options_are_an_assertion_error(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(AssertionError, match="should be") as caught:
        getattr(flow.optim, name)([flow.nn.Parameter(flow.ones(1))], **options)
    assert isinstance(caught.value, collshim.ArgumentError)


# Schedules of a base rate of 0.001, and the rates of their first steps in OneFlow 0.9.0.
RATES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "cosine decay": (
        lambda o: schedules.CosineDecayLR(o, 5, alpha=0.1),
        "0.001 0.000914057647 0.000689057647 0.000410942353 0.000185942353 0.0001 0.0001 0.0001",
    ),
    "cosine annealing": (
        lambda o: schedules.CosineAnnealingLR(o, 5, 0.0001),
        "0.001 0.000914057647 0.000689057647 0.000410942353 0.000185942353 0.0001 0.000185942353 0.000410942353",
    ),
    "constant": (
        lambda o: schedules.ConstantLR(o, 0.5, 3),
        "0.0005 0.0005 0.0005 0.001 0.001 0.001 0.001 0.001",
    ),
    "linear": (
        lambda o: schedules.LinearLR(o, 0.5, 0.9, 3),
        "0.0005 0.000633333333 0.000766666667 0.0009 0.0009 0.0009 0.0009 0.0009",
    ),
    "step": (
        lambda o: schedules.StepLR(o, 3),
        "0.001 0.001 0.001 0.0001 0.0001 0.0001 1e-05 1e-05",
    ),
    "multi-step": (
        lambda o: schedules.MultiStepLR(o, [2, 5]),
        "0.001 0.001 0.0001 0.0001 0.0001 1e-05 1e-05 1e-05",
    ),
    "exponential": (
        lambda o: schedules.ExponentialLR(o, 0.9),
        "0.001 0.0009 0.00081 0.000729 0.0006561 0.00059049 0.000531441 0.0004782969",
    ),
    "polynomial": (
        lambda o: schedules.PolynomialLR(o, 5, power=2.0),
        "0.001 0.000676 0.000424 0.000244 0.000136 0.0001 0.0001 0.0001",
    ),
    "polynomial in cycles": (
        lambda o: schedules.PolynomialLR(o, 5, cycle=True),
        "0.00082 0.00082 0.00064 0.00046 0.00028 0.0001 0.00046 0.00037",
    ),
    "lambda": (
        lambda o: schedules.LambdaLR(o, lambda s: 1 / (s + 1)),
        "0.001 0.0005 0.000333333333 0.00025 0.0002 0.000166666667 0.000142857143 0.000125",
    ),
    "sequential": (
        lambda o: schedules.SequentialLR(o, [schedules.ConstantLR(o, 0.5, 100), schedules.ExponentialLR(o, 0.9)], [3]),
        "0.0005 0.0005 0.0005 0.000729 0.0006561 0.00059049 0.000531441 0.0004782969",
    ),
    "sequential, rescaled": (
        lambda o: schedules.SequentialLR(
            o, [schedules.ConstantLR(o, 0.5, 100), schedules.ExponentialLR(o, 0.9)], [3], True
        ),
        "0.0005 0.0005 0.0005 0.001 0.0009 0.00081 0.000729 0.0006561",
    ),
    "warm-up": (
        lambda o: schedules.WarmUpLR(o, 0.5, 5),
        "0.0005 0.0006 0.0007 0.0008 0.0009 0.001 0.001 0.001",
    ),
    "constant warm-up": (
        lambda o: schedules.WarmUpLR(o, 0.5, 5, "constant"),
        "0.0005 0.0005 0.0005 0.0005 0.0005 0.001 0.001 0.001",
    ),
    "warm-up, then a schedule": (
        lambda o: schedules.WarmUpLR(schedules.CosineDecayLR(o, 5, alpha=0.1), 0.5, 2),
        "0.0005 0.000594528824 0.000689057647 0.000410942353 0.000185942353 0.0001 0.0001 0.0001",
    ),
    "warm-up, then a schedule anew": (
        lambda o: schedules.WarmUpLR(schedules.CosineDecayLR(o, 5, alpha=0.1), 0.5, 2, warmup_prefix=True),
        "0.0005 0.00075 0.001 0.000914057647 0.000689057647 0.000410942353 0.000185942353 0.0001",
    ),
    "no warm-up": (
        lambda o: schedules.WarmupLR(schedules.StepLR(o, 2), warmup_iters=0),
        "0.001 0.001 0.0001 0.0001 1e-05 1e-05 1e-06 1e-06",
    ),
    "chained": (
        lambda o: schedules.ChainedScheduler([schedules.ConstantLR(o, 0.5, 3), schedules.ExponentialLR(o, 0.9)]),
        "0.0005 0.00045 0.000405 0.000729 0.0006561 0.00059049 0.000531441 0.0004782969",
    ),
}


@pytest.mark.parametrize("name", RATES)
def test_learning_rates_match_oneflow(name: str) -> None:
    optimizer = flow.optim.SGD([flow.nn.Parameter(flow.ones(1))], lr=0.001)
    make, wanted = RATES[name]
    schedule, rates = make(optimizer), []
    for step in range(8):
        assert schedule.last_step == step
        rates.append(f"{optimizer.param_groups[0]['lr']:.9g}")
        assert schedule.get_last_lr() == [optimizer.param_groups[0]["lr"]]
        schedule.step()
    assert " ".join(rates) == wanted


@pytest.mark.parametrize("name", ["cosine decay", "lambda", "sequential", "warm-up, then a schedule"])
def test_schedule_resumes_from_its_state(name: str) -> None:
    make, _ = RATES[name]
    first, second = (make(flow.optim.SGD([flow.nn.Parameter(flow.ones(1))], lr=0.001)) for _ in range(2))
    for _ in range(3):
        first.step()
    second.load_state_dict(first.state_dict())
    first.step()
    second.step()
    assert second.get_last_lr() == first.get_last_lr()


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda o: schedules.CosineDecayLR(o, 0), AssertionError),
        (lambda o: schedules.CosineDecayLR(o.param_groups, 1), TypeError),
        (lambda o: schedules.ConstantLR(o, 2.0), ValueError),
        (lambda o: schedules.MultiStepLR(o, [5, 2]), AssertionError),
        (lambda o: schedules.WarmUpLR(o, warmup_method="cubic"), ValueError),
        (lambda o: schedules.WarmUpLR(o, warmup_iters=0), ValueError),
        (lambda o: schedules.SequentialLR(o, [], []), ValueError),
        (lambda o: schedules.StepLR(o, 2, last_step=3), KeyError),
    ],
)
def test_invalid_schedule_is_refused(make: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind) as caught:
        make(flow.optim.SGD([flow.nn.Parameter(flow.ones(1))]))
    assert isinstance(caught.value, collshim.ArgumentError)
