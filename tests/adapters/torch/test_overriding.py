"""A subclass of Tensor that takes calls over by ``__torch_function__``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
import torch

import collshim.torch.distributed as dist
from collshim import ArgumentTypeError

if TYPE_CHECKING:
    from tests.adapters.torch.conftest import Run


class _Plain(torch.Tensor):
    pass


class _Taking(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func, len(args), kwargs


def _taking() -> Any:
    return torch.zeros(2).as_subclass(_Taking)


CALLS: list[tuple[Any, Callable[[Any], Any]]] = [
    (dist.all_reduce, lambda t: dist.all_reduce(t, async_op=False)),
    (dist.broadcast, lambda t: dist.broadcast(t, 0)),
    (dist.reduce, lambda t: dist.reduce(tensor=t, dst=0)),
    (dist.all_gather, lambda t: dist.all_gather([torch.zeros(2)], t)),
    (dist.all_gather_single, lambda t: dist.all_gather_single(torch.zeros(2), t)),
    (dist.gather, lambda t: dist.gather(t, [torch.zeros(2)])),
    (dist.scatter, lambda t: dist.scatter(t, [torch.zeros(2)])),
    (dist.reduce_scatter, lambda t: dist.reduce_scatter(t, [torch.zeros(2)])),
    (dist.reduce_scatter_single, lambda t: dist.reduce_scatter_single(torch.zeros(2), t)),
    (dist.all_to_all, lambda t: dist.all_to_all([torch.zeros(2)], [t])),
    (dist.all_to_all_single, lambda t: dist.all_to_all_single(torch.zeros(2), t)),
    (dist.send, lambda t: dist.send(t, 0)),
    (dist.recv, lambda t: dist.recv(t, 0)),
    (dist.isend, lambda t: dist.isend(t, 0)),
    (dist.irecv, lambda t: dist.irecv(t, 0)),
]


@pytest.mark.parametrize(("function", "call"), CALLS)
def test_it_gets_the_call_with_the_function_that_was_called(
    run: Run, function: Any, call: Callable[[Any], Any]
) -> None:
    assert run(lambda: call(_taking())[0] is function, 1) == [True]


def test_a_subclass_that_takes_nothing_over_is_a_tensor_like_any_other(run: Run) -> None:
    def rank() -> Any:
        dist.all_reduce(tensor := torch.ones(2).as_subclass(_Plain))
        return tensor.tolist()

    assert run(rank, 2) == [[2.0, 2.0]] * 2


def test_the_class_itself_is_no_tensor(run: Run) -> None:
    def rank() -> None:
        wrong: Any = _Taking
        with pytest.raises(ArgumentTypeError, match="Invalid function argument"):
            dist.all_reduce(wrong)

    run(rank, 1)
