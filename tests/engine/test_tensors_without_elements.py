"""Tensors that have no elements in memory, or not all: refused before anything is sent, and the next call is right."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from tests.engine.worlds import attempt, on_ranks, world

SHAPE = (4, 3)


def nested() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says that they are a prototype
        return torch.nested.nested_tensor([torch.ones(2), torch.ones(1)])


def freed() -> Any:
    tensor = torch.ones(SHAPE)
    tensor.untyped_storage().resize_(0)
    return tensor


def half_freed() -> Any:
    tensor = torch.ones(SHAPE)
    tensor.untyped_storage().resize_(8)
    return tensor


def fake() -> Any:
    with FakeTensorMode():
        return torch.ones(SHAPE)


def masked() -> Any:
    return np.ma.masked_array(np.ones(SHAPE, np.float32), np.zeros(SHAPE, bool))


def inference() -> Tensor:
    with torch.inference_mode():
        return torch.ones(SHAPE)


MAKERS: tuple[Callable[[], Any], ...] = (nested, freed, half_freed, fake, masked)


def refused() -> Any:
    comm = world()
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for maker in MAKERS:
        array = maker()
        calls = {
            "all_reduce": lambda array=array: comm.all_reduce(array),
            "in place": lambda array=array: comm.all_reduce(array, out=array),
            "listed": lambda array=array: comm.all_to_all([array] * comm.size),
            "sent": lambda array=array: comm.send(array, 1 - comm.rank),
            "out": lambda array=array: comm.all_reduce(torch.ones(SHAPE), out=array),
        }
        found |= {(maker.__name__, name): attempt(call).raised for name, call in calls.items()}
    inferred = inference()
    found["inference", "out"] = attempt(lambda: comm.all_reduce(torch.ones(SHAPE), out=inferred)).raised
    return found, comm.all_reduce(torch.ones(2)).wait().tolist()


def test_they_are_refused_and_the_next_call_is_right(transport: str) -> None:
    for found, total in on_ranks(refused, 2, transport):
        assert {call: raised for call, raised in found.items() if "ArgumentError" not in raised} == {}
        assert total == [2.0, 2.0]


def test_memory_that_is_freed_after_a_call_is_refused_by_the_next_one(transport: str) -> None:
    assert on_ranks(reduced_then_freed, 2, transport) == [("ArgumentTypeError", [2.0])] * 2


def reduced_then_freed() -> Any:
    comm, tensor = world(), torch.ones(SHAPE)
    for _ in range(2):
        comm.all_reduce(tensor, out=tensor).wait()
    tensor.untyped_storage().resize_(0)
    raised = attempt(lambda: comm.all_reduce(tensor, out=tensor)).raised[0]
    return raised, comm.all_reduce(torch.ones(1)).wait().tolist()
