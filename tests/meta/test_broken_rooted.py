"""Adapters with one fault each in a collective with a root, or with a part for each rank."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from collshim import current
from tests.meta.faults import Fault, Start, is_caught

pytestmark = pytest.mark.threads

TORCH, MINDSPORE = "torch.distributed.", "mindspore.communication.comm_func."


def world() -> Any:
    return current().communicator


def reduced_everywhere(tensor: Any, dst: int, op: str = "sum", group: Any = None) -> None:
    world().all_reduce(tensor, op, out=tensor).wait()


def partial_sums_left(tensor: Any, dst: int, op: str = "sum", group: Any = None) -> None:
    found = world().reduce(tensor, dst, op).wait()
    tensor.copy_(tensor + 1 if found is None else found)


def reduced_to_the_first(tensor: Any, dst: int, op: str = "sum", group: Any = None) -> None:
    found = world().reduce(tensor, 0, op).wait()
    if found is not None:
        tensor.copy_(found)


def global_rank_taken_for_group_rank(tensor: Any, src: int, group: Any = None) -> None:
    group.communicator.broadcast(tensor, src, out=tensor).wait()


def broadcast_to_nobody(tensor: Any, src: int, group: Any = None) -> None:
    world().broadcast(tensor, src).wait()


def broadcast_into_other_memory(tensor: Any, src: int, group: Any = None) -> None:
    tensor.data = world().broadcast(tensor, src).wait().clone()


def gathered_backwards(tensor: Any, gather_list: Any, dst: int, group: Any = None) -> None:
    world().gather(tensor, dst, out=None if gather_list is None else gather_list[::-1]).wait()


def gathered_into_new_tensors(tensor: Any, gather_list: Any, dst: int, group: Any = None) -> None:
    found = world().gather(tensor, dst).wait()
    if gather_list is not None:
        gather_list[:] = list(found)


def scattered_to_the_neighbour(tensor: Any, scatter_list: Any, src: int, group: Any = None) -> None:
    world().scatter(None if scatter_list is None else scatter_list[::-1], src, out=tensor).wait()


def own_part_aliased(tensor: Any, scatter_list: Any, src: int, group: Any = None) -> None:
    world().scatter(scatter_list, src, out=tensor).wait()
    if scatter_list is not None:
        tensor.data = scatter_list[src]


def scatter_list_emptied(tensor: Any, scatter_list: Any, src: int, group: Any = None) -> None:
    world().scatter(scatter_list, src, out=tensor).wait()
    if scatter_list is not None:
        scatter_list.clear()


def everybodys_part_the_same(output: Any, input_list: list[Any], op: str = "sum", group: Any = None) -> None:
    world().reduce_scatter([input_list[0]] * len(input_list), op, out=output).wait()


def input_list_reduced_too(output: Any, input_list: list[Any], op: str = "sum", group: Any = None) -> None:
    world().reduce_scatter(input_list, op, out=output).wait()
    input_list[world().rank].copy_(output)


def summed_not_averaged(output: Any, input_list: list[Any], op: str = "sum", group: Any = None) -> None:
    world().reduce_scatter(input_list, "sum", out=output).wait()


def none_off_the_root(tensor: Any, dst: int, op: str = "sum", group: Any = None) -> Any:
    return world().reduce(tensor, dst, op).wait()


def whole_off_the_root(tensor: Any, dst: int, op: str = "sum", group: Any = None) -> Any:
    found = world().reduce(tensor, dst, op).wait()
    return torch.zeros_like(tensor) if found is None else found


FAULTS = [
    Fault(TORCH + "reduce", reduced_everywhere, "(rank 1 of 2)"),
    Fault(TORCH + "reduce", partial_sums_left, "(rank 1 of 2)"),
    Fault(TORCH + "reduce", reduced_to_the_first, "(rank 1 of 2)", {"root": 1}),
    Fault(TORCH + "broadcast", global_rank_taken_for_group_rank, "tensor at [0, 0]", {"group": (1, 0)}),
    Fault(TORCH + "broadcast", broadcast_to_nobody, "is 99.0, should be"),
    Fault(TORCH + "broadcast", broadcast_into_other_memory, "that tensor keeps its memory is False"),
    Fault(TORCH + "gather", gathered_backwards, "gather_list[0] at [0, 0] is"),
    Fault(TORCH + "gather", gathered_into_new_tensors, "that gather_list holds the tensors given is False"),
    Fault(TORCH + "scatter", scattered_to_the_neighbour, "tensor at [0, 0] is"),
    Fault(TORCH + "scatter", own_part_aliased, "that the root's output shares memory with its part is True"),
    Fault(TORCH + "scatter", scatter_list_emptied, "the length of scatter_list is 0, should be 2"),
    Fault(TORCH + "reduce_scatter", everybodys_part_the_same, "output at [0, 0] is"),
    Fault(TORCH + "reduce_scatter", input_list_reduced_too, "input_list[0] at [0, 0] is"),
    Fault(TORCH + "reduce_scatter", summed_not_averaged, "output at [0, 0] is", {"reduce_op": "avg"}),
    Fault(MINDSPORE + "reduce", none_off_the_root, "returned is None, should be an array of shape (1,)"),
    Fault(MINDSPORE + "reduce", whole_off_the_root, "the shape of returned is (2, 3), should be (1,)"),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.function.__name__)
def test_each_fault_is_caught(pool: Start, fault: Fault) -> None:
    is_caught(pool, fault)
