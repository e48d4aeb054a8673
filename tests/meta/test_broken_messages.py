"""Adapters with one fault each in messages, barriers, objects or gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from collshim import current
from collshim.conformance.bindings import barriers
from tests.meta.faults import Fault, Start, is_caught

pytestmark = pytest.mark.threads

TORCH = "torch.distributed."


def world() -> Any:
    return current().communicator


def received_nowhere(tensor: Any, src: int, group: Any = None) -> int:
    world().recv(src, like=tensor).wait()
    return src


def own_rank_for_source(tensor: Any, src: int, group: Any = None) -> int:
    world().recv(src, out=tensor).wait()
    return int(world().rank)


def no_source(tensor: Any, src: int, group: Any = None) -> None:
    world().recv(src, out=tensor).wait()


def sent_twice_as_much(tensor: Any, dst: int, group: Any = None) -> None:
    world().send(tensor * 2, dst).wait()


def nobody_waits(group: Any = None) -> None:
    """Skip the barrier."""


def barrier_returned(group: Any = None) -> Any:
    world().barrier().wait()
    return True


def own_object_everywhere(object_list: list[Any], obj: Any, group: Any = None) -> None:
    world().all_gather_object(obj).wait()
    object_list[:] = [obj] * len(object_list)


def tuples_become_lists(object_list: list[Any], obj: Any, group: Any = None) -> None:
    found = world().all_gather_object(obj).wait()
    object_list[:] = [list(one) if isinstance(one, tuple) else one for one in found]


def objects_of_the_wrong_rank(output: list[Any], given: Any = None, src: int = 0, group: Any = None) -> None:
    output[0] = world().scatter_object(None if given is None else given[::-1], src).wait()


def every_output_written(output: list[Any], given: Any = None, src: int = 0, group: Any = None) -> None:
    output[:] = [world().scatter_object(given, src).wait()] * len(output)


class _OwnGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, own: Any, result: Any) -> Any:
        return result.view_as(result)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return gradients[0], None


def gradient_of_this_rank_alone(tensor: Any, op: str = "sum", group: Any = None) -> Any:
    return _OwnGradient.apply(tensor, world().all_reduce(tensor.detach(), op).wait())  # type: ignore[no-untyped-call]


def gradient_off_by_the_size(tensor: Any, op: str = "sum", group: Any = None) -> Any:
    result = world().all_reduce(tensor, op).wait()
    return result.detach() + (result - result.detach()) / world().size


def no_gradient(tensor: Any, op: str = "sum", group: Any = None) -> Any:
    return world().all_reduce(tensor.detach(), op).wait().requires_grad_()


GRADIENT = {"gradient": True}
FAULTS = [
    Fault(TORCH + "send", received_nowhere, "received at [0, 0] is 99.0", {}, TORCH + "recv"),
    Fault(TORCH + "send", own_rank_for_source, "returned['recv'] is 0, should be 1", {}, TORCH + "recv"),
    Fault(TORCH + "send", no_source, "returned['recv'] is None, should be 1", {}, TORCH + "recv"),
    Fault(TORCH + "send", sent_twice_as_much, "received at [0, 0] is"),
    Fault(TORCH + "barrier", nobody_waits, "leaving is before rank 1 arrived, should be after every rank arrived"),
    Fault(TORCH + "barrier", barrier_returned, "returned is True, should be None"),
    Fault(TORCH + "all_gather_object", own_object_everywhere, "object_list[1]"),
    Fault(TORCH + "all_gather_object", tuples_become_lists, "object_list[1] is a list of 3, should be a tuple of 3"),
    Fault(TORCH + "scatter_object_list", objects_of_the_wrong_rank, "scatter_object_output_list[0]"),
    Fault(TORCH + "scatter_object_list", every_output_written, "scatter_object_output_list[1]"),
    Fault(TORCH + "nn.functional.all_reduce", gradient_of_this_rank_alone, "the gradient of input at", GRADIENT),
    Fault(TORCH + "nn.functional.all_reduce", gradient_off_by_the_size, "the gradient of input at", GRADIENT),
    Fault(TORCH + "nn.functional.all_reduce", no_gradient, "the gradient of input is None", GRADIENT),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.function.__name__)
def test_each_fault_is_caught(pool: Start, fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(barriers, "APART_SECONDS", 0.5)  # a busy machine delays a rank by more than the usual 2 ms
    is_caught(pool, fault)
