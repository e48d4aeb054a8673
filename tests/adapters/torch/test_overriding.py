"""A subclass of Tensor that overrides calls by ``__torch_function__``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import collshim.torch.distributed as dist
from collshim import ArgumentTypeError
from tests.adapters.conftest import Run
from tests.adapters.torch.calls.collectives import EACH


class _Plain(torch.Tensor):
    pass


class _Taking(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func, len(args), kwargs


def _taking() -> Any:
    return torch.zeros(2).as_subclass(_Taking)


CALLS: dict[str, Callable[..., Any]] = {
    **EACH,
    **{name: lambda t, two, whole, name=name: getattr(dist, name)(t, 0) for name in ("send", "recv", "isend", "irecv")},
}


@pytest.mark.parametrize("name", CALLS)
def test_override_gets_the_call_and_its_function(run: Run, name: str) -> None:
    function = getattr(dist, name)
    assert run(lambda: CALLS[name](_taking(), [torch.zeros(2)], torch.zeros(2))[0] is function, 1) == [True]


@pytest.mark.ranks(2)
def test_subclass_without_overrides_is_a_plain_tensor() -> None:
    dist.all_reduce(tensor := torch.ones(2).as_subclass(_Plain))
    assert tensor.tolist() == [2.0, 2.0]


@pytest.mark.ranks(1)
def test_class_itself_is_not_a_tensor() -> None:
    wrong: Any = _Taking
    with pytest.raises(ArgumentTypeError, match="Invalid function argument"):
        dist.all_reduce(wrong)
