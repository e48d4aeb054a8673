"""``mint.optim``: torch's rules, with MindSpore's states, groups and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import collshim.mindspore as ms
from collshim.mindspore import Parameter, Tensor, nn, ops
from collshim.mindspore.mint import optim

pytestmark = pytest.mark.unranked

GRADIENTS = [np.array([0.1, -0.2], np.float32), np.array([0.5, 0.0], np.float32), np.array([-1.0, 0.3], np.float32)]


def parameters() -> list[Parameter]:
    return [Parameter(Tensor(np.array([1.0, -2.0], np.float32)), name=name) for name in ("w", "b")]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {"lr": 0.1}),
        ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1, "nesterov": True}),
        ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.5, "maximize": True}),
        ("Adam", {"lr": 0.1, "weight_decay": 0.1}),
        ("Adam", {"lr": 0.1, "amsgrad": True, "betas": (0.5, 0.6)}),
        ("AdamW", {"lr": 0.1}),
        ("AdamW", {"lr": 0.1, "weight_decay": 0.5, "amsgrad": True, "maximize": True}),
    ],
)
def test_three_steps_are_those_of_torch(name: str, options: dict[str, Any]) -> None:
    own = parameters()
    step = getattr(optim, name)(own, **options)
    theirs = [torch.tensor([1.0, -2.0], requires_grad=True) for _ in own]
    reference = getattr(torch.optim, name)(theirs, **options)
    for gradient in GRADIENTS:
        assert step([Tensor(gradient), Tensor(-gradient)]) is True
        theirs[0].grad, theirs[1].grad = torch.tensor(gradient), torch.tensor(-gradient)
        reference.step()
    for mine, expected in zip(own, theirs, strict=True):
        np.testing.assert_allclose(mine.asnumpy(), expected.detach().numpy(), rtol=1e-5)


def test_states_have_mindspores_names() -> None:
    names = [each.name for each in optim.AdamW(parameters()).get_parameters()]
    assert names == ["w", "b", "exp_avg.w", "exp_avg.b", "exp_avg_sq.w", "exp_avg_sq.b", "state_step"]
    assert [each.name for each in optim.SGD(parameters(), 0.1).get_parameters()][2:] == [
        "momentum_buf.w",
        "momentum_buf.b",
        "step_t",
    ]


def test_a_groups_learning_rate_is_a_parameter_that_assign_changes() -> None:
    first, second = parameters()
    step = optim.SGD([{"params": [first], "lr": 0.5}], lr=0.1)
    step.add_param_group({"params": [second]})
    assert [rate.name for rate in step.lrs] == ["learning_rate_group_0", "learning_rate_group_1"]
    ops.assign(step.param_groups[1]["lr"], 2.0)
    step([Tensor(np.ones(2, np.float32))] * 2)
    assert (first.asnumpy().tolist(), second.asnumpy().tolist()) == ([0.5, -2.5], [-1.0, -4.0])


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: optim.Adam(parameters(), lr=1), TypeError, "the type of 'lr' should be 'float'"),
        (lambda: optim.Adam(parameters(), lr=-1.0), ValueError, "Invalid learning rate: -1.0"),
        (lambda: optim.Adam(parameters(), betas=(0.9, 1.0)), ValueError, "Invalid beta parameter at index 1: 1.0"),
        (lambda: optim.SGD(parameters(), 0.1, nesterov=True), ValueError, "'momentum' must be > 0.0"),
        (lambda: optim.SGD(parameters(), 0.1, momentum=-1), ValueError, "Invalid momentum value"),
        (lambda: optim.Adam([]), ValueError, "must not be empty"),
        (lambda: optim.Adam(None), ValueError, "can not be None"),
        (lambda: optim.Adam(5), TypeError, "must be Iterable"),
        (lambda: optim.Adam([{"lr": 0.5}]), KeyError, "params"),
        (lambda: optim.Adam([*parameters()[:1], *parameters()[:1]]), ValueError, "already exists"),
        (lambda: optim.Adam(parameters())([Tensor(GRADIENTS[0])]), ValueError, "one gradient for each of 2"),
    ],
)
def test_wrong_arguments_are_refused(make: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make()


@pytest.mark.parametrize("make", [lambda own: nn.SGD(own, 0.1), lambda own: nn.Adam(own, 0.1)])
def test_an_optimizers_own_parameters_begin_with_its_step_and_rate(make: Callable[[Any], nn.Cell]) -> None:
    assert [each.name for each in make(parameters()).get_parameters()][:3] == ["global_step", "learning_rate", "w"]


def test_mint_optim_is_a_module_of_mint() -> None:
    assert ms.mint.optim is optim
