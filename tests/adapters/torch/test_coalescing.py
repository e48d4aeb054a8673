"""Several calls as one."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch

import collshim
import collshim.torch.distributed as dist
from tests.adapters.conftest import Refused, Run, each_of

pytestmark = pytest.mark.filterwarnings("ignore:`torch.distributed.*_coalesced` will be deprecated:FutureWarning")


def test_coalesced_calls_are_posted_at_the_end(run: Run) -> None:
    def rank() -> Any:
        tensors = [torch.ones(2), torch.ones(3) * dist.get_rank()]
        with dist._coalescing_manager():
            for tensor in tensors:
                dist.all_reduce(tensor)
            inside = [tensor.tolist() for tensor in tensors]
        return inside, [tensor.tolist() for tensor in tensors]

    after = [[2.0, 2.0], [1.0, 1.0, 1.0]]
    assert run(rank, 2) == [([[1.0, 1.0], [float(r)] * 3], after) for r in range(2)]


def test_coalesced_call_shows_the_line_of_its_user(run: Run) -> None:
    def block() -> None:
        with dist._coalescing_manager():
            dist.all_reduce(torch.ones(2))
            dist.all_reduce(torch.ones(3 + dist.get_rank()))

    def calls() -> str:
        with pytest.raises(collshim.MismatchError) as caught:
            block()
        return str(caught.value)

    for text in run(calls, 2):
        assert text.count(" at test_coalescing.py:") == 2, text


@pytest.mark.ranks(3)
def test_coalesced_calls_keep_their_own_reduce_op() -> None:
    summed, highest = torch.ones(2), torch.ones(2) * dist.get_rank()
    with dist._coalescing_manager():
        dist.all_reduce(summed)
        dist.all_reduce(highest, dist.ReduceOp.MAX)
    assert (summed.tolist(), highest.tolist()) == ([3.0, 3.0], [2.0, 2.0])


@pytest.mark.ranks(2)
def test_user_waits_for_an_asynchronous_manager() -> None:
    wholes, parts = [torch.zeros(4), torch.zeros(2, 3)], [torch.ones(2), torch.ones(3) * dist.get_rank()]
    with dist._coalescing_manager(async_ops=True) as manager:
        works = [dist.all_gather_single(*pair, async_op=True) for pair in zip(wholes, parts, strict=True)]
    manager.wait()
    assert len(manager.works) == 1
    with pytest.raises(ValueError, match="Illegal to call wait on IllegalWork"):
        works[0].wait()  # type: ignore[union-attr]
    assert [whole.tolist() for whole in wholes] == [[1.0] * 4, [[0.0] * 3, [1.0] * 3]]


@each_of(2, gives=[[[0.0], [0.0, 2.0]], [[2.0], [4.0, 6.0]]])
def test_coalesced_reduce_scatters_are_one_call() -> Any:
    outputs = [torch.zeros(1), torch.zeros(2)]
    with dist._coalescing_manager():
        for output in outputs:
            dist.reduce_scatter_single(output, torch.arange(2.0 * output.numel()))
    return [output.tolist() for output in outputs]


@each_of(2, gives=[(2.0, 1.0)] * 2)
def test_other_groups_and_functions_are_not_delayed() -> Any:
    other = dist.new_group()
    with dist._coalescing_manager():
        dist.all_reduce(elsewhere := torch.ones(1), group=other)
        dist.broadcast(sent := torch.tensor(float(dist.get_rank())), 1)
        return elsewhere.item(), sent.item()


def test_invalid_manager_uses_are_refused(run: Run, refused: Refused) -> None:
    def mixed() -> None:
        with dist._coalescing_manager():
            dist.all_reduce(torch.ones(1))
            dist.all_gather_single(torch.ones(1), torch.ones(1))

    def nested() -> None:
        with dist._coalescing_manager(), dist._coalescing_manager():
            pass

    def rank() -> Any:
        refused(RuntimeError, mixed, "all collectives to be the same type")
        refused(ValueError, nested, "non-empty op list at the start of coalescing")
        with dist._coalescing_manager():
            dist.all_reduce(tensor := torch.ones(1))
        return tensor.item()

    assert run(rank, 1) == [1.0]


def test_lists_of_unequal_tensors_are_reduced_and_gathered(run: Run) -> None:
    def rank() -> Any:
        mine = float(dist.get_rank())
        reduced = [torch.ones(2), torch.ones(2, 2).t() * mine, torch.zeros(0)]
        dist.all_reduce_coalesced(reduced)
        outputs = [[torch.zeros(2), torch.zeros(0), torch.zeros(1, 2)] for _ in range(2)]
        future = dist.all_gather_coalesced(
            outputs, [torch.ones(2) * mine, torch.ones(0), torch.ones(1, 2)], async_op=True
        )
        assert future is not None
        assert future.wait() is outputs
        return [each.tolist() for each in reduced], [[each.tolist() for each in part] for part in outputs]

    gathered = [[[r, r], [], [[1.0, 1.0]]] for r in (0.0, 1.0)]
    assert run(rank, 2) == [([[2.0, 2.0], [[1.0, 1.0]] * 2, []], gathered)] * 2


@each_of(1, gives=[(1, 1.0)])
def test_manager_outside_the_group_does_nothing() -> Any:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with dist._coalescing_manager(group=-100):
            dist.all_reduce(tensor := torch.ones(1), group=-100)
    return len(told), tensor.item()


@each_of(2, gives=[True, True])
def test_manager_returns_a_work() -> bool:
    with dist._coalescing_manager(async_ops=True) as manager:
        work = dist.all_reduce(torch.ones(1), async_op=True)
    manager.wait()
    return isinstance(work, dist.Work)


def test_invalid_coalesced_calls_are_refused(run: Run, refused: Refused) -> None:
    one, int32 = torch.ones(1), torch.ones(1, dtype=torch.int32)

    def rank() -> None:
        refused(ValueError, lambda: dist.all_reduce_coalesced([one, int32]), "different dtypes")
        refused(TypeError, lambda: dist.all_reduce_coalesced((one,)), "type List")
        refused(NotImplementedError, lambda: dist.all_reduce_coalesced([]), "no tensor arguments")
        refused(NotImplementedError, lambda: dist.all_gather_coalesced([[]] * 2, []), "no tensor arguments")
        refused(RuntimeError, lambda: dist.all_gather_coalesced([[one]] * 3, [one]), "should be 2 times")
        refused(RuntimeError, lambda: dist.all_gather_coalesced([[torch.ones(2)]] * 2, [one]), "its shapes are")

    run(rank, 2)
