"""Names that collshim.oneflow does not define: torch's if they mean the same, else refused."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
import torch

import collshim
import collshim.oneflow as flow
from collshim.oneflow._absent import REFUSED

# One function of each kind that OneFlow scripts compute with.
COMPUTES = {
    "randn": lambda: flow.randn(2, 3),
    "rand": lambda: flow.rand(2),
    "full": lambda: flow.full((2,), 3.0),
    "ones_like": lambda: flow.ones_like(flow.zeros(2)),
    "cat": lambda: flow.cat([torch.zeros(2), torch.ones(2)]),
    "stack": lambda: flow.stack([flow.zeros(2), flow.ones(2)]),
    "matmul": lambda: flow.matmul(flow.ones(2, 2), flow.ones(2, 1)),
    "where": lambda: flow.where(flow.tensor([True]), flow.zeros(1), flow.ones(1)),
    "from_numpy": lambda: flow.from_numpy(np.ones(2)),
    "FloatTensor": lambda: flow.FloatTensor([1, 2]),
    "nn.Linear": lambda: flow.nn.Linear(2, 1)(flow.ones(1, 2)),
    "nn.functional.relu": lambda: flow.nn.functional.relu(flow.ones(2)),
    "_C.reduce_sum": lambda: flow._C.reduce_sum(flow.ones(2)),
    "_C.relu": lambda: flow._C.relu(flow.ones(2)),
    "linalg.norm": lambda: flow.linalg.norm(flow.ones(2)),
}


@pytest.mark.parametrize("name", COMPUTES)
def test_torch_results_have_oneflow_class(name: str) -> None:
    assert type(COMPUTES[name]()) is flow.Tensor


@pytest.mark.parametrize("name", ["no_grad", "enable_grad", "manual_seed", "set_default_dtype", "autograd.Function"])
def test_equivalent_names_exist(name: str) -> None:
    thing: object = flow
    for part in name.split("."):
        thing = getattr(thing, part)
    assert callable(thing)


INDEX = flow.tensor([[0, 2]])
CHANGES: dict[str, tuple[Any, Any]] = {
    "scatter of a number": (lambda: flow.scatter(flow.zeros(1, 3), 1, INDEX, 5.0), [[5.0, 0.0, 5.0]]),
    "scatter, added": (lambda: flow.scatter(flow.ones(1, 3), 1, INDEX, 5.0, reduce="add"), [[6.0, 1.0, 6.0]]),
    "Tensor.scatter": (lambda: flow.zeros(1, 3).scatter(1, INDEX, src=flow.ones(1, 2)), [[1.0, 0.0, 1.0]]),
    "Tensor.scatter_": (lambda: flow.zeros(1, 3).scatter_(1, INDEX, src=2.0), [[2.0, 0.0, 2.0]]),
    "broadcast_like": (lambda: flow.broadcast_like(flow.ones(2), flow.zeros(2, 2)), [[1.0, 1.0], [1.0, 1.0]]),
    "broadcast_like, axes": (lambda: flow.broadcast_like(flow.tensor([1, 2]), flow.zeros(2, 2), [1]), [[1, 1], [2, 2]]),
    "cast": (lambda: flow.cast(flow.ones(1), flow.int64), [1]),
    "expand": (lambda: flow.expand(flow.ones(1), 2), [1.0, 1.0]),
    "repeat": (lambda: flow.repeat(flow.ones(1), 2), [1.0, 1.0]),
    "view": (lambda: flow.view(flow.ones(2), (1, 2)), [[1.0, 1.0]]),
    "new_full": (lambda: flow.new_full(flow.ones(1), (2,), 3.0), [3.0, 3.0]),
    "masked_fill_": (lambda: flow.masked_fill_(flow.ones(2), flow.tensor([True, False]), 0.0), [0.0, 1.0]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_functions_with_other_signatures_take_oneflow_arguments(name: str) -> None:
    make, wanted = CHANGES[name]
    found = make()
    assert type(found) is flow.Tensor
    assert found.tolist() == wanted


def test_dtypes_have_numpy_types() -> None:
    found = [flow.convert_oneflow_dtype_to_numpy_dtype(dtype) for dtype in (flow.float32, flow.int64, flow.bool)]
    assert found == [np.float32, np.int64, np.bool_]


def test_compiler_decorators_return_functions_unchanged() -> None:
    def function() -> int:
        return 3

    with pytest.warns(UserWarning, match="leaves its argument unchanged"):
        assert flow.jit.script(function) is function
    with pytest.warns(UserWarning, match="leaves its argument unchanged"):
        assert flow.jit.ignore()(function) is function
    assert not flow.jit.is_scripting()
    assert not flow.jit.is_tracing()


def test_name_is_one_object() -> None:
    assert flow.randn is flow.randn
    assert flow.nn.Linear is flow.nn.Linear


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("nn.init", "nn.init"),
        ("nn.utils.rnn", "nn.utils.rnn"),
        ("linalg", "linalg"),
        ("distributions", "distributions"),
        ("utils.checkpoint", "utils.checkpoint"),
        ("autograd.functional", "autograd.functional"),
    ],
)
def test_missing_module_falls_through_to_torch(ours: str, theirs: str) -> None:
    assert importlib.import_module(f"collshim.oneflow.{ours}") is importlib.import_module(f"torch.{theirs}")


@pytest.mark.parametrize("path", REFUSED)
def test_name_with_another_meaning_is_refused_with_advice(path: str) -> None:
    owner, _, name = path.rpartition(".")
    module = importlib.import_module(f"collshim.oneflow.{owner}".removesuffix("."))
    with pytest.raises(AttributeError, match="has no attribute") as caught:
        getattr(module, name)
    assert isinstance(caught.value, collshim.CollshimError)
    assert f": {REFUSED[path]}; " in str(caught.value)
    assert not hasattr(module, name)


@pytest.mark.parametrize("path", [path for path in REFUSED if path.islower() and "_" not in path])
def test_import_with_another_meaning_is_refused(path: str) -> None:
    with pytest.raises(ModuleNotFoundError, match="No module named 'collshim") as caught:
        importlib.import_module(f"collshim.oneflow.{path}")
    assert f": {REFUSED[path]}; " in str(caught.value)


# Paths that both have with different meanings: collshim's own, not torch's.
OWN = {
    "distributed": "distributed",
    "distributed.launch": "distributed.launch",
    "nn.parallel": "nn.parallel",
    "nn.parallel.distributed": "nn.parallel.distributed",
    "utils.data": "utils.data",
    "utils.data.distributed": "utils.data.distributed",
    "optim.lr_scheduler": "optim.lr_scheduler",
    "cuda": "cuda",
    "amp": "amp",
}


@pytest.mark.parametrize("path", OWN)
def test_module_with_another_meaning_does_not_fall_through(path: str) -> None:
    ours = importlib.import_module(f"collshim.oneflow.{path}")
    assert ours.__name__ == f"collshim.oneflow.{path}"
    assert ours is not importlib.import_module(f"torch.{path}")


@pytest.mark.parametrize("name", ["init_process_group", "new_group", "all_gather_into_tensor", "scatter", "ReduceOps"])
def test_torch_distributed_does_not_fall_through(name: str) -> None:
    with pytest.raises(AttributeError, match=r"use the collectives of flow\.comm"):
        getattr(flow.distributed, name)


@pytest.mark.parametrize("name", ["noexist", "nn.noexist", "nn.functional.noexist", "_C.noexist", "optim.noexist"])
def test_unknown_name_is_an_attribute_error(name: str) -> None:
    owner, _, last = f"collshim.oneflow.{name}".rpartition(".")
    with pytest.raises(AttributeError, match=f"module '{owner}' has no attribute '{last}'"):
        getattr(importlib.import_module(owner), last)


def test_imitated_release_is_named() -> None:
    assert flow.__version__ == "0.9.0"


def test_dir_omits_refused_names() -> None:
    names = set(dir(flow))
    assert {"comm", "env", "randn", "relu"} <= names
    assert not names & REFUSED.keys()
