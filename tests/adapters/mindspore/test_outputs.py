"""Outputs of other dtypes and lengths, groups that are None, tags, and other module paths: as in MindSpore 2.10.0."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import collshim.mindspore.mint.distributed as dist
from collshim.mindspore import Tensor, ops
from collshim.mindspore.communication import get_rank
from tests.adapters.conftest import Refused, Run


def zeros(rows: int, kind: Any = np.float32) -> Tensor:
    return Tensor(np.zeros((rows, 1), kind))


CALLS: dict[str, Any] = {
    "AllGatherIntoTensor": lambda: dist.all_gather_into_tensor(zeros(2, np.int32), zeros(1)),
    "AllGatherIntoTensorUneven": lambda: dist.all_gather_into_tensor_uneven(zeros(2, np.int32), zeros(1)),
    "ReduceScatterTensor": lambda: dist.reduce_scatter_tensor(zeros(1, np.int32), zeros(2)),
    "ReduceScatterTensorUneven": lambda: dist.reduce_scatter_tensor_uneven(zeros(1, np.int32), zeros(2)),
    "AllToAllVSingle": lambda: dist.all_to_all_single(zeros(2, np.int32), zeros(2)),
    "AllToAllV": lambda: dist.all_to_all([zeros(1, np.int32)] * 2, [zeros(1)] * 2),
    "GatherIntoTensor": lambda: ops.communication.gather_into_tensor(zeros(2, np.int32), zeros(1)),
    "ScatterTensor": lambda: ops.communication.scatter_tensor(zeros(1, np.int32), zeros(2)),
}


def test_output_of_another_dtype_is_a_value_error(run: Run, refused: Refused) -> None:
    def texts() -> list[str]:
        return [refused(ValueError, call) for call in CALLS.values()]

    for found in run(texts, 2):
        told = "output_tensor type Int32 must be equal to input_tensor type Float32"
        assert [text.partition(" (rank")[0] for text in found] == [f"For 'DistComm{name}', {told}" for name in CALLS]


def test_longer_output_list_keeps_its_rest(run: Run) -> None:
    def exchanged() -> list[float]:
        outputs = [zeros(1) - 1 for _ in range(3)]
        dist.all_to_all(outputs, [zeros(1) + get_rank()] * 2)
        return [float(output) for output in outputs]

    assert run(exchanged, 2) == [[0.0, 1.0, -1.0]] * 2


def test_uneven_exchanges_take_none_for_all_ranks(run: Run) -> None:
    def exchanged() -> list[Any]:
        flat = Tensor(np.arange(2, dtype=np.float32) + 10 * get_rank())
        return [ops.AlltoAllV(group=None)(flat, [1, 1], [1, 1]), ops.AlltoAllVC(group=None)(flat, [1, 1, 1, 1])]

    wanted = [[[0.0, 10.0]] * 2, [[1.0, 11.0]] * 2]
    assert [[each.tolist() for each in found] for found in run(exchanged, 2)] == wanted


@pytest.mark.unranked
def test_tag_of_a_batch_is_not_supported(refused: Refused) -> None:
    refused(NotImplementedError, lambda: dist.P2POp("isend", zeros(1), 1, tag=2), match="tag is not support yet")


@pytest.mark.unranked
@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("ops.function.comm_func", "all_reduce"),
        ("ops.functional", "depend"),
        ("ops.composite", "GradOperation"),
        ("ops.operations._inner_ops", "Send"),
        ("mint.nn", "Linear"),
        ("dataset", "MnistDataset"),
        ("train.callback", "LossMonitor"),
        ("nn.optim", "SGD"),
        ("context", "set_ps_context"),
    ],
)
def test_names_have_their_other_paths(module: str, name: str) -> None:
    assert callable(getattr(importlib.import_module(f"collshim.mindspore.{module}"), name))
