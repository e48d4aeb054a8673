"""Adapters with one fault each in a collective without a root: all_gather, all_reduce, all_to_all."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from collshim import current
from collshim.conformance import reference
from collshim.conformance.bindings import find
from collshim.conformance.bindings.answers import Seen
from collshim.conformance.cases import Case
from collshim.conformance.comparison import differences
from tests.meta.faults import Fault, Start, is_caught

pytestmark = pytest.mark.threads

TORCH, MINDSPORE = "torch.distributed.", "mindspore.communication.comm_func."
MEGENGINE, ONEFLOW = "megengine.functional.distributed.", "oneflow.comm."


def world() -> Any:
    return current().communicator


def swapped_ranks(tensor_list: list[Any], tensor: Any, group: Any = None) -> None:
    world().all_gather(tensor, out=tensor_list[::-1]).wait()


def replaced_for_filled(tensor_list: list[Any], tensor: Any, group: Any = None) -> None:
    tensor_list[:] = list(world().all_gather(tensor).wait())


def filled_for_replaced(tensor_list: list[Any], tensor: Any) -> None:
    world().all_gather(tensor, out=tensor_list).wait()


def stale_output(tensor_list: list[Any], tensor: Any, group: Any = None) -> None:
    world().all_gather(tensor).wait()


def stale_own_slot(tensor_list: list[Any], tensor: Any, group: Any = None) -> None:
    for rank, part in enumerate(world().all_gather(tensor).wait()):
        if rank != world().rank:
            tensor_list[rank].copy_(part)


def returned_value(tensor_list: list[Any], tensor: Any, group: Any = None) -> list[Any]:
    world().all_gather(tensor, out=tensor_list).wait()
    return tensor_list


def handle_for_none(tensor_list: list[Any], tensor: Any, group: Any = None) -> Any:
    return world().all_gather(tensor, out=tensor_list)


def deaf_to_groups(tensor_list: list[Any], tensor: Any, group: Any = None) -> None:
    members = world().subgroup(sorted(group.communicator.ranks))
    members.all_gather(tensor, out=tensor_list).wait()


def only_the_root(tensor: Any, op: str = "sum", group: Any = None) -> None:
    reduced = world().reduce(tensor, 0, op).wait()
    if reduced is not None:
        tensor.copy_(reduced)


def wrong_operation(tensor: Any, op: str = "sum", group: Any = None) -> None:
    world().all_reduce(tensor, "sum", out=tensor).wait()


def result_off_the_memory(tensor: Any, op: str = "sum", group: Any = None) -> None:
    tensor.data = world().all_reduce(tensor, op).wait()


def rotated_split(output_list: list[Any], input_list: list[Any], group: Any = None) -> None:
    world().all_to_all(input_list[1:] + input_list[:1], out=output_list).wait()


def stacked_for_concatenated(tensor: Any, group: Any = None) -> tuple[Any, None]:
    return world().all_gather(tensor).wait(), None


def forgotten_handle(tensor: Any, group: Any = None) -> Any:
    return world().all_gather(tensor).wait().flatten(0, 1)


def list_for_tuple(tensor: Any, group: Any = None) -> list[Any]:
    return [world().all_gather(tensor).wait().flatten(0, 1), None]


def wrong_dtype(tensor: Any, op: str = "sum", group: Any = None) -> tuple[Any, None]:
    return world().all_reduce(tensor, op).wait().double(), None


def wrong_kind(tensor: Any, op: str = "sum", group: Any = None) -> tuple[Any, None]:
    return torch.from_numpy(world().all_reduce(tensor, op).wait()), None


def changed_input(tensor: Any, op: str = "sum", group: Any = None) -> tuple[Any, None]:
    return world().all_reduce(tensor, op, out=tensor).wait().clone(), None


def imprecise(tensor: Any, op: str = "sum", group: Any = None) -> tuple[Any, None]:
    return torch.from_numpy(np.nextafter(world().all_reduce(tensor, op).wait().numpy(), np.inf)), None


def beyond_the_tolerance(tensor: Any, op: str = "sum", group: Any = None) -> tuple[Any, None]:
    return world().all_reduce(tensor, op).wait() * 1.001, None


def flushed(tensor: Any, op: str = "sum", group: Any = None) -> None:
    tensor.mul_(tensor.abs() >= torch.finfo(tensor.dtype).tiny)
    world().all_reduce(tensor, op, out=tensor).wait()


def handle_without_an_answer(tensor_list: list[Any], tensor: Any, group: Any = None, async_op: bool = True) -> Any:
    work = world().all_gather(tensor, out=tensor_list)
    return SimpleNamespace(wait=lambda: work.wait() and None)


def never_waited_for(tensor_list: list[Any], tensor: Any, group: Any = None, async_op: bool = True) -> Any:
    world().all_gather(tensor).wait()
    return SimpleNamespace(wait=lambda: True)


def wrong_axis(inp: Any, group: Any = None, axis: int = 0) -> Any:
    return world().all_gather(inp).wait().flatten(0, 1)


def swapped_axes(inp: Any, group: Any = None, split_axis: int = 0, concat_axis: int = 0) -> Any:
    parts = [part.contiguous() for part in inp.chunk(world().size, split_axis)]
    return torch.cat(world().all_to_all(parts).wait(), dim=split_axis)


def wrong_exception(inp: Any, **axes: Any) -> Any:
    raise ValueError("current axis: 0 can't devided by group size")


def wrong_text(inp: Any, **axes: Any) -> Any:
    raise AssertionError("no")


def nothing_refused(inp: Any, **axes: Any) -> Any:
    return inp


def not_implemented(inp: Any, **axes: Any) -> Any:
    raise NotImplementedError("all_gather")


INDIVISIBLE = {"lengths": ((1, 2), (1, 2))}
FAULTS = [
    Fault(TORCH + "all_gather", swapped_ranks, "tensor_list[0] at [0, 0] is"),
    Fault(TORCH + "all_gather", replaced_for_filled, "that tensor_list holds the tensors given is False"),
    Fault(ONEFLOW + "all_gather", filled_for_replaced, "that tensor_list holds the tensors given is True"),
    Fault(TORCH + "all_gather", stale_output, "is 99.0, should be"),
    Fault(TORCH + "all_gather", stale_own_slot, "is 99.0, should be"),
    Fault(TORCH + "all_gather", returned_value, "returned is a list of 2, should be None"),
    Fault(TORCH + "all_gather", handle_for_none, "returned is a handle, should be None"),
    Fault(TORCH + "all_gather", deaf_to_groups, "tensor_list[0] at", {"group": (1, 0)}),
    Fault(TORCH + "all_reduce", only_the_root, "(rank 1 of 2)"),
    Fault(TORCH + "all_reduce", wrong_operation, "tensor at", {"reduce_op": "max"}),
    Fault(TORCH + "all_reduce", result_off_the_memory, "that tensor keeps its memory is False"),
    Fault(TORCH + "all_to_all", rotated_split, "output_tensor_list[0] at"),
    Fault(MINDSPORE + "all_gather_into_tensor", stacked_for_concatenated, "the shape of returned[0] is (2, 2, 3)"),
    Fault(MINDSPORE + "all_gather_into_tensor", forgotten_handle, "should be a tuple of 2"),
    Fault(MINDSPORE + "all_gather_into_tensor", list_for_tuple, "is a list of 2, should be a tuple of 2"),
    Fault(MINDSPORE + "all_reduce", wrong_dtype, "the dtype of returned[0] is float64, should be float32"),
    Fault(MINDSPORE + "all_reduce", wrong_kind, "the kind of returned[0] is torch", {"kind": "numpy"}),
    Fault(MINDSPORE + "all_reduce", changed_input, "input at"),
    Fault(MINDSPORE + "all_reduce", imprecise, "returned[0] at"),
    Fault(MINDSPORE + "all_reduce", beyond_the_tolerance, "within 1e-05", {"family": "real"}),
    Fault(TORCH + "all_reduce", flushed, "tensor at [0, 2] is 0.0"),
    Fault(TORCH + "all_gather[async]", handle_without_an_answer, "returned's wait() is None, should be True"),
    Fault(TORCH + "all_gather[async]", never_waited_for, "is 99.0, should be"),
    Fault(MEGENGINE + "all_gather", wrong_axis, "the shape of returned is (4, 3), should be (2, 6)", {"axis": 1}),
    Fault(MEGENGINE + "all_to_all", swapped_axes, "the shape of returned is", {"axis": 1}),
    Fault(MEGENGINE + "all_to_all", wrong_exception, "the class of the exception is ValueError", INDIVISIBLE),
    Fault(MEGENGINE + "all_to_all", wrong_text, "the text of the exception is 'no'", INDIVISIBLE),
    Fault(MEGENGINE + "all_to_all", nothing_refused, "the exception is none", INDIVISIBLE),
    Fault(MEGENGINE + "all_gather", not_implemented, "the exception is NotImplementedError"),
]


def test_flushing_is_allowed_only_if_declared() -> None:
    binding, case = find(TORCH + "all_reduce"), Case("all_reduce")
    answers = [binding.expected(case, rank, reference) for rank in range(2)]
    for answer in answers:
        values = answer.arguments["tensor"]
        values[abs(values) < np.finfo("float32").smallest_normal] = 0
    seen = [replace(one, arguments={"tensor": Seen("torch", one.arguments["tensor"])}) for one in answers]
    assert any(differences(binding, case, 0, seen[0]))
    assert not any(differences(replace(binding, flushes="it does"), case, 0, seen[0]))


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.function.__name__)
def test_each_fault_is_caught(pool: Start, fault: Fault) -> None:
    is_caught(pool, fault)
