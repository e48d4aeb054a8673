"""The sbp of results along one axis, of choices, selections, fillings and moves: as OneFlow 0.9.0 gives them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import collshim.oneflow as flow

BROADCAST, PARTIAL = flow.sbp.broadcast, flow.sbp.partial_sum
FIRST, SECOND, THIRD = (flow.sbp.split(axis) for axis in range(3))
F: Any = flow.nn.functional


def _global(sbp: Any) -> Any:
    place = flow.placement("cpu", ranks=[0, 1])
    local: Any = flow.arange(48).reshape(4, 2, 6) % 7 - 3.0
    return local.to_global(place, BROADCAST).to_global(place, sbp)


CALLS: list[tuple[str, Any, Callable[[Any], Any], Any]] = [
    ("softmax along a split axis", FIRST, lambda x: F.softmax(x, dim=0), THIRD),
    ("softmax of a sum", PARTIAL, lambda x: x.softmax(dim=-1), FIRST),
    ("sort along a split axis", FIRST, lambda x: x.sort(dim=0)[0], SECOND),
    ("sort beside a split axis", SECOND, lambda x: flow.sort(x, dim=0)[0], SECOND),
    ("cumsum along the last axis", FIRST, lambda x: x.cumsum(2), BROADCAST),
    ("cumsum before a split axis", THIRD, lambda x: x.cumsum(0), THIRD),
    ("cumsum after a split axis", FIRST, lambda x: x.cumsum(1), THIRD),
    ("tril of split matrices", SECOND, lambda x: x.tril(), FIRST),
    ("triu of a sum", PARTIAL, lambda x: x.triu(), PARTIAL),
    ("diagonal of a split tensor", FIRST, lambda x: flow.diagonal(x), BROADCAST),
    ("one_hot of a split tensor", SECOND, lambda x: F.one_hot(x.abs().to(flow.int64), 7), SECOND),
    ("where of sums", PARTIAL, lambda x: flow.where(x > 0, x, x * 2), PARTIAL),
    ("where of a sum and a number", PARTIAL, lambda x: flow.where(x > 0, x, 1.0), PARTIAL),
    ("where of different shapes", FIRST, lambda x: flow.where(x > 0, x, _global(BROADCAST)[0, 0]), BROADCAST),
    ("ones like a sum", PARTIAL, lambda x: flow.ones_like(x), PARTIAL),
    ("elements of a split tensor at a mask", FIRST, lambda x: x[x > 0], BROADCAST),
    ("elements of a sum at a mask", PARTIAL, lambda x: x[x > 0], PARTIAL),
    ("squeeze of a sum", PARTIAL, lambda x: x.sum(0, keepdim=True).squeeze(0), FIRST),
    ("flip of a sum", PARTIAL, lambda x: x.flip(0), SECOND),
]


@pytest.mark.parametrize(("sbp", "call", "expected"), [case[1:] for case in CALLS], ids=[case[0] for case in CALLS])
@pytest.mark.ranks(2)
def test_result_has_oneflows_sbp_and_its_parts_make_the_whole(sbp: Any, call: Any, expected: Any) -> None:
    x = _global(sbp)
    result = call(x)
    whole = call(_global(BROADCAST))
    assert result.sbp == (expected,)
    joined = result.to_local().to_global(result.placement, result.sbp).to_global(sbp=BROADCAST)
    assert flow.allclose(joined.to_local(), whole.to_local())


REFUSED: list[tuple[Callable[[Any, Any], Any], type[Exception], str]] = [
    (lambda x, place: x.to_global(place, flow.sbp.split(2)), RuntimeError, r"range of \[0, 2\), but got 2!"),
    (lambda x, place: x.to_global(place, BROADCAST).to_global(sbp=flow.sbp.split(3)), RuntimeError, "but got 3!"),
    (lambda x, place: x.to_global(place, BROADCAST, dim=1), TypeError, "'dim' is an invalid keyword argument"),
]


@pytest.mark.parametrize(("call", "kind", "text"), REFUSED)
@pytest.mark.ranks(2)
def test_to_global_refuses_axes_and_options_that_do_not_exist(call: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call(flow.ones(2, 2), flow.placement("cpu", ranks=[0, 1]))


def test_split_takes_a_bool_as_an_axis() -> None:
    assert repr(flow.sbp.split(True)) == "oneflow.sbp.split(dim=1)"
