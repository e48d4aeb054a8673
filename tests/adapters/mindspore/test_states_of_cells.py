"""Buffers, ``state_dict`` and ``load_state_dict`` of Cells: as in MindSpore 2.10.0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from collshim.mindspore import Tensor, nn

pytestmark = pytest.mark.unranked

ONES = Tensor(np.ones((2, 3), np.float32))


def with_buffer(persistent: bool = True) -> Any:
    net = nn.SequentialCell(nn.Dense(3, 2), nn.BatchNorm1d(2))
    net[0].register_buffer("b", Tensor([1.0]), persistent)
    return net


def test_a_buffer_is_an_attribute_and_no_parameter() -> None:
    net = with_buffer()
    assert net[0].b.asnumpy().tolist() == [1.0]
    assert [name for name, _ in net.named_buffers()] == ["0.b"]
    assert [name for name, _ in net.named_buffers("p")] == ["p.0.b"]
    assert list(net.named_buffers(recurse=False)) == []
    assert next(net.buffers()) is net[0].b
    assert "0.b" not in [parameter.name for parameter in net.get_parameters()]


def test_state_dict_has_parameters_and_kept_buffers() -> None:
    names = ["0.weight", "0.bias", "1.moving_mean", "1.moving_variance", "1.gamma", "1.beta"]
    net = with_buffer()
    assert sorted(net.state_dict()) == sorted([*names, "0.b"])
    assert sorted(with_buffer(persistent=False).state_dict()) == sorted(names)
    assert net.state_dict()["0.weight"] is net[0].weight
    assert list(nn.Dense(3, 2).state_dict(prefix="a.")) == ["a.weight", "a.bias"]


def test_load_state_dict_copies_values() -> None:
    source, target = with_buffer(), with_buffer()
    source[0].b.fill_(7)
    weight = target[0].weight
    assert str(target.load_state_dict(source.state_dict())) == "<All keys matched successfully>"
    assert target[0].weight is weight
    assert weight.asnumpy().tolist() == source[0].weight.asnumpy().tolist()
    assert target[0].b.asnumpy().tolist() == [7.0]


def test_load_state_dict_tells_other_names() -> None:
    net = nn.Dense(3, 2)
    found = net.load_state_dict({"weight": ONES, "q": ONES}, strict=False)
    assert str(found) == "_IncompatibleKeys(missing_keys=['bias'], unexpected_keys=['q'])"
    assert net.weight.asnumpy().tolist() == ONES.asnumpy().tolist()
    with pytest.raises(RuntimeError, match="missing names"):
        net.load_state_dict({"weight": ONES})


@pytest.mark.parametrize(
    ("state", "error", "text"),
    [
        (3, TypeError, "should be a dict"),
        ({"weight": ONES.asnumpy()}, RuntimeError, "should be a Tensor"),
        ({"weight": Tensor(np.ones((2, 4), np.float32))}, RuntimeError, "has the shape"),
    ],
)
def test_load_state_dict_refuses_other_values(state: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        nn.Dense(3, 2).load_state_dict(state, strict=False)


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("b", 3, TypeError),
        ("weight", ONES, KeyError),
        ("a.b", ONES, KeyError),
        ("", ONES, KeyError),
        (1, ONES, TypeError),
    ],
)
def test_register_buffer_refuses_other_arguments(name: Any, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="register_buffer"):
        nn.Dense(3, 2).register_buffer(name, value)


def test_a_buffer_may_be_none_and_is_replaced_by_registering() -> None:
    net = nn.Dense(3, 2)
    net.register_buffer("b", None)
    assert net.b is None
    assert list(net.named_buffers()) == []
    net.register_buffer("b", ONES)
    assert net.b is ONES
    with pytest.raises(TypeError, match="Buffer 'b' already exists"):
        net.b = ONES
    del net.b
    assert not hasattr(net, "b")


def test_optimizers_tell_rates_and_decays() -> None:
    net = nn.Dense(3, 2)
    plain = nn.SGD(net.trainable_params(), weight_decay=0.5, loss_scale=4.0)
    assert plain.get_weight_decay().asnumpy() == 2.0
    assert (plain.dynamic_lr, plain.dynamic_weight_decay, plain.need_scale, plain.unique) == (False, False, True, True)
    assert (plain.reciprocal_scale.asnumpy().item(), plain.target) == (0.25, "CPU")
    groups: Any = [{"params": [net.weight], "lr": 0.01, "weight_decay": 0.5}, {"params": [net.bias]}]
    grouped = nn.Momentum(groups, 0.5, 0.9, weight_decay=0.25)
    assert [decay.asnumpy() for decay in grouped.get_weight_decay()] == [0.5, 0.25]
    assert [round(rate.asnumpy().item(), 4) for rate in grouped.group_lr] == [0.01, 0.5]
    assert nn.Momentum(net.trainable_params(), [0.1, 0.2], 0.9).dynamic_lr
    assert not grouped.need_scale


def test_cross_entropy_of_probabilities_has_no_class_to_ignore() -> None:
    values, labels = Tensor([[0.5, -1.25, 2.0]]), Tensor([[0.25, 0.5, 0.25]])
    assert nn.CrossEntropyLoss(ignore_index=0)(values, labels) == nn.CrossEntropyLoss()(values, labels)
