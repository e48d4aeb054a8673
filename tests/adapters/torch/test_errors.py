"""Refused calls, also after valid ones: the error is torch's class and ours, has torch's text, and nothing is sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import collshim.torch.distributed as dist
from tests.adapters.conftest import Refused, Run, each_of
from tests.adapters.torch.calls.collectives import EACH

F, INT, C = torch.zeros(2), torch.zeros(2, dtype=torch.int32), torch.zeros(2, dtype=torch.complex64)
ROW, OTHER_ROW, TWO = torch.zeros(1, 2), torch.zeros(1, 2), torch.zeros(2, 2)
Op = dist.ReduceOp
REFUSED: list[tuple[type[Exception], str, Callable[[Any], Any]]] = [
    (TypeError, "Expected parameter `tensor` of type torch.Tensor", lambda d: d.all_reduce([1.0])),
    (TypeError, "Expected parameter `tensor` of type torch.Tensor", lambda d: d.all_reduce(None)),
    (TypeError, "Expected parameter `tensor` of type torch.Tensor", lambda d: d.broadcast(3, 0)),
    (TypeError, "Expected parameter `tensor` of type torch.Tensor", lambda d: d.reduce("x", 0)),
    (TypeError, "Expected parameter `tensor` of type torch.Tensor", lambda d: d.all_gather([F, F], [F])),
    (TypeError, "Expected parameter `tensor` of type torch.Tensor", lambda d: d.irecv(None)),
    (TypeError, r"Expected parameter `tensor_list` of type List\[torch", lambda d: d.all_gather((F, F), F)),
    (TypeError, r"Expected parameter `tensor_list` of type List\[torch", lambda d: d.all_gather(TWO, F)),
    (TypeError, "with elements of type", lambda d: d.all_gather([F, 1], F)),
    (TypeError, r"Expected parameter `gather_list` of type List\[torch", lambda d: d.gather(F, (F, F))),
    (TypeError, r"Expected parameter `scatter_list` of type List\[torch", lambda d: d.scatter(F, (F, F))),
    (TypeError, r"Expected parameter `input_list` of type List\[torch", lambda d: d.reduce_scatter(F, (F, F))),
    (
        TypeError,
        r"Expected parameter `input_list` of type List\[torch",
        lambda d: d.reduce_scatter(F, torch.zeros(2, 2)),
    ),
    (TypeError, r"Expected parameter `output_tensor_list`", lambda d: d.all_to_all((F, F), [F, F])),
    (TypeError, r"Expected parameter `input_tensor_list`", lambda d: d.all_to_all([F, F], (F, F))),
    (TypeError, "Expected parameter `output`", lambda d: d.all_to_all_single(None, F)),
    (TypeError, "Expected parameter `input`", lambda d: d.reduce_scatter_single(F, [F, F])),
    (TypeError, "Expected parameter `output_tensor`", lambda d: d.all_gather_single([F, F], F)),
    (TypeError, "incompatible function arguments", lambda d: d.all_reduce(F, "sum")),
    (TypeError, "incompatible function arguments", lambda d: d.all_reduce(F, 0)),
    (TypeError, "incompatible function arguments", lambda d: d.reduce_scatter(F, [F, F], None)),
    (ValueError, "tensors with different dtypes", lambda d: d.all_gather([F, F], INT)),
    (ValueError, "tensors with different dtypes", lambda d: d.all_gather([F, INT], F)),
    (ValueError, "tensors with different dtypes", lambda d: d.reduce_scatter(INT, [F, F])),
    (ValueError, "tensors with different dtypes", lambda d: d.all_to_all([F, F], [INT, INT])),
    (ValueError, "tensors with different dtypes", lambda d: d.all_to_all([INT, INT], [C, C])),
    (ValueError, "tensors with different dtypes", lambda d: d.all_to_all_single(INT, F)),
    (ValueError, "tensors with different dtypes", lambda d: d.gather(INT, [F, F])),
    (ValueError, "does not support RedOpType.MAX on complex", lambda d: d.all_reduce(C, Op.MAX)),
    (ValueError, "does not support RedOpType.PRODUCT on complex", lambda d: d.all_reduce(C, Op.PRODUCT)),
    (ValueError, "Must specify global_rank or group_rank", lambda d: d.broadcast(F)),
    (ValueError, "Must specify global_rank or group_rank", lambda d: d.reduce(F)),
    (ValueError, "Can't specify both group_rank and global_rank", lambda d: d.broadcast(F, 0, group_src=0)),
    (ValueError, "Can't specify both group_rank and global_rank", lambda d: d.gather(F, dst=0, group_dst=0)),
    (RuntimeError, "length of output list is 1, should be 2", lambda d: d.all_gather([F], F)),
    (RuntimeError, r"shape of output\[0\] is \(3,\)", lambda d: d.all_gather([torch.zeros(3), torch.zeros(3)], F)),
    (
        RuntimeError,
        r"shape of output\[0\] is \(1, 2\)",
        lambda d: d.all_gather([ROW, OTHER_ROW], F),
    ),
    (
        RuntimeError,
        r"output_tensor's shape is \(3,\), should be \(4,\) or \(2, 2\)",
        lambda d: d.all_gather_single(torch.zeros(3), F),
    ),
    (RuntimeError, r"output_tensor's shape is \(1, 4\)", lambda d: d.all_gather_single(torch.zeros(1, 4), F)),
    (RuntimeError, "dtype of output is int64", lambda d: d.all_gather_single(torch.zeros(4, dtype=torch.int64), F)),
    (RuntimeError, "length of input list is 3, should be 2", lambda d: d.reduce_scatter(F, [F, F, F])),
    (
        RuntimeError,
        r"input's shape is \(5,\), should be \(4,\) or \(2, 2\)",
        lambda d: d.reduce_scatter_single(F, torch.zeros(5)),
    ),
    (RuntimeError, "length of output list is 1, should be 2", lambda d: d.all_to_all([F], [F, F])),
    (RuntimeError, "root is 99, should be from 0 to 1", lambda d: d.broadcast(F, 99)),
    (RuntimeError, "root is -1", lambda d: d.reduce(F, -1)),
    (RuntimeError, "dtype is float32", lambda d: d.all_reduce(F, Op.BAND)),
    (RuntimeError, "total dim 0 size", lambda d: d.all_to_all_single(F, F, [1, 1], [1, 2])),
    (RuntimeError, "divide equally", lambda d: d.all_to_all_single(torch.zeros(3), torch.zeros(3))),
    (RuntimeError, "Number of tensor splits not equal to group size", lambda d: d.all_to_all_single(F, F, [2], [2])),
]


@pytest.mark.parametrize(("theirs", "match", "call"), REFUSED, ids=range(len(REFUSED)))
@each_of(2, gives=[2.0, 2.0])
def test_refused_call_leaves_the_rank_usable(
    refused: Refused, theirs: type[Exception], match: str, call: Callable[[Any], Any]
) -> float:
    for times in (0, 2):  # a call seen before is not validated again
        for right in [*EACH.values()] * times:
            right(torch.zeros(2), [torch.zeros(2), torch.zeros(2)], torch.zeros(4))
        if dist.get_rank() == 0:  # the other rank does not notice
            refused(theirs, lambda: call(dist), match)
            refused(theirs, lambda: call(dist), r"\(rank 0 of 2")
    dist.all_reduce(tensor := torch.ones(1))
    return tensor.item()


@pytest.mark.parametrize("times", [0, 2])
@pytest.mark.ranks(2)
def test_list_belongs_to_the_root_only(refused: Refused, times: int) -> None:
    root = dist.get_rank()
    for right in [EACH["gather"], EACH["scatter"]] * times:
        right(torch.zeros(2), [torch.zeros(2), torch.zeros(2)], None)
    other = 1 - root
    refused(ValueError, lambda: dist.gather(F, dst=root), "gather_list`` must be specified on destination rank")
    refused(ValueError, lambda: dist.gather(F, [], dst=root), "gather_list`` must be specified on destination rank")
    refused(ValueError, lambda: dist.gather(F, [F, F], dst=other), "gather_list`` must NOT be specified")
    refused(ValueError, lambda: dist.scatter(F, src=root), "scatter_list`` must be specified on source rank")
    refused(ValueError, lambda: dist.scatter(F, [F, F], src=other), "scatter_list`` must NOT be specified")
    refused(RuntimeError, lambda: dist.gather(F, [F, F, F], dst=root), "length of output list is 3, should be 2")
    refused(RuntimeError, lambda: dist.scatter(F, [F], src=root), "length of input list is 1, should be 2")


def test_unregistered_group_is_refused(run: Run, refused: Refused) -> None:
    groups: dict[int, Any] = {}

    def rank() -> None:
        groups[dist.get_rank()] = dist.group.WORLD
        dist.barrier()
        other = groups[1 - dist.get_rank()]
        refused(ValueError, lambda: dist.all_reduce(F, group=other), "is not registered, please create group with")
        refused(ValueError, lambda: dist.all_reduce(F, group="world"), "is not registered")  # type: ignore[arg-type]

    run(rank, 2)
