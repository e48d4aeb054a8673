"""Calls between a forward and its backward, and on tensors made in inference mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import collshim
import collshim.torch.distributed as dist
from collshim.launching.kinds import RANK_KINDS
from tests.adapters.conftest import Run
from tests.adapters.torch.calls.collectives import EACH

SECONDS = 60


class _Reduced(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return gradients[0]


def _backwards() -> list[Any]:
    w = torch.ones(2, requires_grad=True)
    _Reduced.apply((torch.ones(2) * w).relu()).sum().backward()  # type: ignore[no-untyped-call]
    first, w.grad = w.grad, None
    hidden = torch.full((2,), 3.0)
    loss = (hidden * w).sum()
    dist.broadcast(hidden, 0)
    loss.backward()
    second, w.grad = w.grad, None
    output = (w * 0).sigmoid()
    dist.all_reduce(output.detach())
    output.sum().backward()
    return [None if grad is None else grad.tolist() for grad in (first, second, w.grad)]


@pytest.mark.parametrize("kind", RANK_KINDS)
def test_backward_after_call_on_saved_tensors_matches_gloo(kind: Any) -> None:
    assert (
        collshim.launch(_initialised, 2, args=(_backwards,), ranks=kind, timeout=SECONDS)
        == [
            [[1.0, 1.0], [3.0, 3.0], [0.0, 0.0]]  # sigmoid's saved output is 1 by then
        ]
        * 2
    )


def _initialised(fn: Callable[[], Any]) -> Any:
    dist.init_process_group("gloo")
    return fn()


def _two() -> list[Tensor]:
    return [torch.zeros(2), torch.zeros(2)]


def _one_sent(one: Tensor, two: list[Tensor], whole: Tensor) -> None:
    dist.recv(one, 1) if dist.get_rank() == 0 else dist.send(one, 0)


COUNTED = {
    *("all_gather", "all_gather_single", "gather", "reduce_scatter", "reduce_scatter_single", "all_to_all"),
    "all_reduce_coalesced",
}
CALLS: dict[str, Callable[..., object]] = {
    **EACH,
    "send and recv": _one_sent,
    "all_reduce_coalesced": lambda one, two, whole: dist.all_reduce_coalesced(two),
}


@pytest.mark.filterwarnings("ignore:.*coalesced.*:FutureWarning")
@pytest.mark.parametrize("name", CALLS)
def test_version_counters_match_gloo(run: Run, name: str) -> None:
    def rank() -> bool:
        one, two, whole = torch.zeros(2), _two(), torch.zeros(4)
        CALLS[name](one, two, whole)
        return any(tensor._version for tensor in (one, *two, whole))

    assert run(rank, 2)[0] is (name in COUNTED)


def _versions(tensors: list[Tensor]) -> int:
    return sum(tensor._version for tensor in tensors)


def _counted_when_repeated() -> set[str]:
    counted = set[str]()
    for name, call in CALLS.items():
        one, two, whole = torch.zeros(2), _two(), torch.zeros(4)
        call(one, two, whole)
        before = _versions([one, *two, whole])
        call(one, two, whole)
        counted |= {name} if _versions([one, *two, whole]) > before else set()
    dist.broadcast(torch.zeros(2, 3).t(), 1)
    dist.broadcast(turned := torch.full((2, 3), float(dist.get_rank())).t(), 1)
    assert turned.eq(1).all()
    return counted | ({"strided"} if turned._version else set())


@pytest.mark.filterwarnings("ignore:.*coalesced.*:FutureWarning")
def test_version_counters_match_gloo_without_the_check() -> None:
    with collshim.options(check=False):
        found = collshim.launch(_initialised, 2, args=(_counted_when_repeated,), ranks="processes", timeout=SECONDS)
    assert found[0] == COUNTED


@pytest.mark.filterwarnings("ignore:.*coalesced.*:FutureWarning")
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.ranks(2)
def test_inference_tensors_are_valid_outputs_outside(name: str) -> None:
    with torch.inference_mode():
        one, two, whole = torch.zeros(2), _two(), torch.zeros(4)
    CALLS[name](one, two, whole)


def _left_before_the_wait() -> Any:
    with torch.inference_mode():
        one, two = torch.ones(2), torch.ones(2, dtype=torch.int16)
        turned = torch.ones(2, 3).t()
        parts = _two()
        works = [
            dist.all_reduce(one, async_op=True),
            dist.all_reduce(two, dist.ReduceOp.AVG, async_op=True),
            dist.all_reduce(turned, async_op=True),
            dist.all_gather(parts, torch.ones(2), async_op=True),
        ]
    for work in works:
        assert work is not None
        assert work.wait()
    return one.tolist(), two.tolist(), turned.sum().item(), [part.tolist() for part in parts]


@pytest.mark.parametrize("kind", RANK_KINDS)
def test_inference_mode_call_can_be_waited_for_outside(kind: Any) -> None:
    found = collshim.launch(_initialised, 2, args=(_left_before_the_wait,), ranks=kind, timeout=SECONDS)
    assert found == [([2.0, 2.0], [1, 1], 12.0, [[1.0, 1.0]] * 2)] * 2
