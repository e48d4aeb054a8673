"""Placements and sbp are values; local tensors refuse what belongs to global ones."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
import torch

import collshim
import collshim.oneflow as flow
from collshim.oneflow.utils import global_view

NO_INT: list[Any] = ["a"]

USES: dict[str, Callable[[], Any]] = {
    "Tensor.to_local": lambda: flow.ones(2).to_local(),
    "Tensor.placement": lambda: flow.ones(2).placement,
    "Tensor.sbp": lambda: flow.ones(2).sbp,
    "Tensor.to_consistent": lambda: flow.ones(2).to_consistent(None, None),
    "Module.to_local": lambda: flow.nn.Linear(1, 1).to_local(),
}


@pytest.mark.parametrize("what", USES)
@pytest.mark.ranks(2)
def test_use_of_local_tensors_as_global_ones_is_refused_with_advice(what: str) -> None:
    with pytest.raises(RuntimeError, match=r"flow\.comm, or wrap the module in flow\.nn\.parallel") as caught:
        USES[what]()
    assert str(caught.value).startswith(f"{what} is for global tensors")
    assert str(caught.value).endswith(f"(rank {flow.env.get_rank()} of 2)")
    assert isinstance(caught.value, collshim.CollshimError)


CONSTRUCTORS: dict[str, Callable[..., Any]] = {
    "tensor": lambda **place: flow.tensor([1.0, 2.0], **place),
    "Tensor": lambda **place: flow.Tensor(2, **place),
    "ones": lambda **place: flow.ones(2, **place),
    "zeros": lambda **place: flow.zeros(2, **place),
    "arange": lambda **place: flow.arange(2, **place),
    "empty": lambda **place: flow.empty(2, **place),
    "full": lambda **place: flow.full((2,), 1.0, **place),
    "randn": lambda **place: flow.randn(2, **place),
    "randint": lambda **place: flow.randint(0, 2, (2,), **place),
    "new_ones": lambda **place: flow.ones(1).new_ones(2, **place),
}


@pytest.mark.parametrize("name", CONSTRUCTORS)
@pytest.mark.ranks(2)
def test_constructors_take_a_placement_with_an_sbp(name: str) -> None:
    everywhere = {"placement": flow.placement("cpu", [0, 1]), "sbp": flow.sbp.split(0)}
    for missing in everywhere:
        with pytest.raises(AssertionError, match=f"{missing}: None.*should be a placement and an sbp") as caught:
            CONSTRUCTORS[name](**{**everywhere, missing: None})
        assert isinstance(caught.value, TypeError), "OneFlow raises either, depending on the function"
    with pytest.raises(AssertionError, match="without a device"):
        CONSTRUCTORS[name](**everywhere, device="cpu")
    made = CONSTRUCTORS[name](**everywhere)
    assert (made.is_global, tuple(made.shape), tuple(made.to_local().shape)) == (True, (2,), (1,))
    assert CONSTRUCTORS[name](placement=None, sbp=None, device="cpu").is_local


# As OneFlow 0.9.0 prints them.
SHOWN: list[tuple[Callable[[], Any], str]] = [
    (lambda: flow.placement("cpu", [0, 1]), 'oneflow.placement(type="cpu", ranks=[0, 1])'),
    (lambda: flow.placement("cpu", ranks=[[0], [1]]), 'oneflow.placement(type="cpu", ranks=[[0], [1]])'),
    (lambda: flow.placement("cpu", {0: [0]}), 'oneflow.placement(type="cpu", ranks=[0])'),
    (lambda: flow.placement(device_type="cpu", device_ids={0: [0]}), 'oneflow.placement(type="cpu", ranks=[0])'),
    (lambda: flow.placement("cpu", 0), 'oneflow.placement(type="cpu", ranks=[0])'),
    (lambda: flow.placement("cpu", np.array([0, 1])), 'oneflow.placement(type="cpu", ranks=[0, 1])'),
    (lambda: flow.placement.all("cpu"), 'oneflow.placement(type="cpu", ranks=[0, 1])'),
    (lambda: flow.env.all_device_placement("cpu"), 'oneflow.placement(type="cpu", ranks=[0, 1])'),
    (lambda: flow.sbp.broadcast, "oneflow.sbp.broadcast"),
    (lambda: flow.sbp.broadcast(), "oneflow.sbp.broadcast"),
    (lambda: flow.sbp.partial_sum, "oneflow.sbp.partial_sum"),
    (lambda: flow.sbp.split(0), "oneflow.sbp.split(dim=0)"),
    (lambda: flow.sbp.split(axis=1), "oneflow.sbp.split(dim=1)"),
]


@pytest.mark.parametrize(("make", "text"), SHOWN)
@pytest.mark.ranks(2)
def test_records_are_shown_compared_hashed_and_pickled(make: Callable[[], Any], text: str) -> None:
    made = make()
    assert repr(made) == text
    assert made == make() == pickle.loads(pickle.dumps(made))
    assert hash(made) == hash(make())


def test_placement_has_ranks_and_their_shape() -> None:
    placement = flow.placement("cpu", [[0, 1], [2, 3]])
    assert (placement.type, placement.device_type, placement.hierarchy) == ("cpu", "cpu", torch.Size([2, 2]))
    assert placement.ranks.tolist() == [[0, 1], [2, 3]]
    assert placement != flow.placement("cpu", [0, 1, 2, 3])
    assert flow.sbp.split(0) != flow.sbp.split(1)


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda: flow.placement("tpu", [0]), RuntimeError, "Expected one of cpu, cuda device type"),
        (lambda: flow.placement("cpu", []), RuntimeError, "placement ranks shoule be an array of long int"),
        (lambda: flow.placement("cpu", [0.5]), RuntimeError, "placement ranks shoule be an array of long int"),
        (lambda: flow.placement("cpu", ["a"]), RuntimeError, "placement ranks shoule be an array of long int"),
        (lambda: flow.placement("cpu", [[0, 1], [2]]), RuntimeError, "placement ranks shoule be an array of long int"),
        (lambda: flow.placement("cpu", [[0, 0]]), RuntimeError, "should contain each rank once"),
        (lambda: flow.placement("cpu", [0, 1], hierarchy=(3,)), RuntimeError, "should have room for 2 ranks"),
        (lambda: flow.placement("cpu", [-1]), RuntimeError, "placement ranks shoule be an array of long int"),
        (lambda: flow.placement("cpu", flow.arange(2)), RuntimeError, "placement ranks shoule be an array of long int"),
        (lambda: flow.env.all_device_placement(cast(Any, 3)), TypeError, "type is 3, should be a str"),
        (lambda: flow.sbp.split(6), RuntimeError, "should be below 6"),
        (lambda: flow.to_local([1]), AttributeError, "input is a list, should be a global tensor"),
        (lambda: flow.global_to_global(flow.ones(1)), AssertionError, "input is a local tensor, should be a global"),
        (lambda: flow.local_to_global(flow.ones(1)), ValueError, "a local tensor needs a placement and an sbp"),
        (lambda: flow.sbp.split(-1), RuntimeError, "Split axis must not be negative, but got -1!"),
        (flow.sbp.split, TypeError, r"split_sbp\(\) missing 1 required argument: 'dim'"),
        (lambda: flow.sbp.split(*NO_INT), AssertionError, "dim is 'a', should be an int"),
    ],
)
def test_invalid_placement_or_sbp_is_refused(make: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text) as caught:
        make()
    assert isinstance(caught.value, collshim.ArgumentError)


def test_boxing_switches_change_nothing() -> None:
    flow.boxing.enable_fusion(True)
    for name in ("set_fusion_threshold_mbytes", "allow_fuse_all_reduce", "enable_use_compute_stream"):
        assert getattr(flow.boxing.nccl, name)(8) is None


def test_value_that_is_no_tensor_is_told_of() -> None:
    with pytest.warns(UserWarning, match="Non-Tensor type: <class 'int'> encountered, it will remain the same"):
        assert global_view.to_global([1], placement=flow.placement("cpu", [0]), sbp=flow.sbp.broadcast) == [1]
