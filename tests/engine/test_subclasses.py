"""Subclasses of torch's Tensor: removed from inputs, restored on results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from collshim.arrays import as_output, as_torch, like, register_kind
from tests.engine.scenarios import subclasses
from tests.engine.scenarios.subclasses import Foreign, foreign
from tests.engine.worlds import on_ranks


def _of_class(values: Any) -> tuple[str, Any]:
    return "Foreign", values


def _held(rank: int) -> dict[str, Any]:
    other = 1 - rank
    return {
        "all_reduce": _of_class([3.0]),
        "all_reduce max": _of_class([2.0]),
        "reduce": _of_class([3.0]) if rank == 1 else None,
        "broadcast": _of_class([2.0]),
        "all_gather": _of_class([[1.0], [2.0]]),
        "gather": _of_class([[1.0], [2.0]]) if rank == 0 else None,
        "scatter": _of_class([rank + 1.0]),
        "reduce_scatter": _of_class([2.0 * (rank + 1)]),
        "all_to_all": _of_class([[rank + 1.0], [rank + 1.0]]),
        "all_to_all list": [_of_class([1.0]), _of_class([2.0])],
        "all_reduce_coalesced": [_of_class([3.0]), _of_class([[2.0], [4.0]])],
        "ring": _of_class([other + 1.0]),
    }


def test_every_collective_returns_the_class(transport: str) -> None:
    assert on_ranks(subclasses.forms, 2, transport) == [_held(0), _held(1)]


def test_outputs_of_the_class_are_written(transport: str) -> None:
    each = [_of_class([1.0]), _of_class([2.0])]
    held = [True, _of_class([3.0]), each, _of_class([[1.0], [2.0]]), _of_class([3.0])]
    assert on_ranks(subclasses.places, 2, transport) == [held, held]


def test_gradients_flow_through_the_class(checked: str) -> None:
    largest = [[0.0], [6.0]]
    assert on_ranks(subclasses.gradients, 2, checked) == [
        ["Foreign", [6.0], "Foreign", [6.0], "Foreign", largest[rank]] for rank in range(2)
    ]


def test_parameter_returns_a_tensor() -> None:
    assert on_ranks(subclasses.parameter, 2, "threads") == ["Tensor", "Tensor"]


def test_memory_is_shared_both_ways() -> None:
    tensor = foreign([1.0])
    back = like(tensor)
    assert back is not None
    assert type(as_torch(tensor)) is type(as_output(tensor)) is torch.Tensor
    addresses = {each.data_ptr() for each in (tensor, as_torch(tensor), as_output(tensor), back(as_torch(tensor)))}
    assert len(addresses) == 1


@pytest.fixture
def registered() -> Iterator[type[torch.Tensor]]:
    from collshim.arrays import kinds

    class Weight(Foreign):
        """A class whose results have its base class."""

    register_kind(Weight, lambda tensor: tensor.as_subclass(Foreign))
    yield Weight
    del kinds._KINDS[Weight]


def test_class_can_name_its_result_class(registered: type[torch.Tensor]) -> None:
    back = like(torch.ones(2).as_subclass(registered))
    assert back is not None
    assert type(back(torch.ones(2))) is Foreign


def test_fake_tensor_is_kept() -> None:
    with FakeTensorMode():
        fake = torch.ones(2)
    assert as_torch(fake) is fake
    assert like(fake) is None
