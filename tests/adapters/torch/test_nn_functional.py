"""collshim.torch.distributed.nn.functional: warnings, refusals, written outputs and return values."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import collshim.torch.distributed as dist
from collshim.torch.distributed import nn
from collshim.torch.distributed.nn import functional as F
from tests.adapters.conftest import Refused, Run, each_of

pytestmark = pytest.mark.filterwarnings("ignore:.*is deprecated, use:FutureWarning")


def test_functions_are_in_nn_and_aliases_are_torch() -> None:
    import torch.distributed.nn as torchs

    assert all(getattr(nn, name) is getattr(F, name) for name in F.__all__ if not name.startswith("_"))
    assert nn.RemoteModule is torchs.RemoteModule


def _tensor() -> Tensor:
    return torch.tensor([1.0, 2.0]) + dist.get_rank()


@each_of(2, gives=[True, True])
def test_outputs_are_written_and_returned() -> Any:
    x, mine = _tensor(), dist.get_rank()
    wants = x.clone().requires_grad_()
    for given in (x, wants):
        part, base, single = torch.zeros(2), torch.zeros(2, 2), torch.zeros(4)
        parts = [torch.zeros(2), torch.zeros(2)]
        results = [
            (part, F.reduce_scatter(part, [given, 2 * given])),
            (base, F._all_gather_base(base, given)),
            (single, F.all_to_all_single(single, torch.cat([given, 2 * given]))),
            *zip(parts, F.all_to_all(parts, [given, 2 * given]), strict=True),
        ]
        assert all(one.data_ptr() == other.data_ptr() for one, other in results)
        assert all(torch.equal(one, other) for one, other in results)
        assert all(result.requires_grad == given.requires_grad for _, result in results)
        assert not any(output.requires_grad for output, _ in results)
        assert part.tolist() == [3 + 3 * mine, 5 + 5 * mine]
        assert base.tolist() == [[1, 2], [2, 3]]
        assert single.tolist() == torch.cat(parts).tolist() == [[1, 2, 2, 3], [2, 4, 4, 6]][mine]
    return True


@pytest.mark.ranks(2)
def test_numpy_input_returns_numpy() -> None:
    x, output = np.array([1.0, 2.0]) + dist.get_rank(), np.zeros(2)
    found = [F.all_reduce(x), F.broadcast(x, 0), F.reduce(x, 0), *F.all_gather(x), *F.gather(x, 0)]
    assert F.reduce_scatter(output, [x, x]) is output
    assert ({type(part) for part in found}, output.tolist()) == ({np.ndarray}, [3, 5])


def test_rank_outside_the_group_warns_and_keeps_its_value(run: Run) -> None:
    def rank() -> Any:
        group, x, output = dist.new_group([0]), _tensor(), torch.zeros(2)
        if dist.get_rank() == 0:
            return None
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", UserWarning)
            warnings.simplefilter("ignore", FutureWarning)
            for same in (F.broadcast(x, 0, group), F.reduce(x, 0, group=group), F.all_reduce(x, group=group)):
                assert same is x
            assert F.reduce_scatter(output, [x, x], group=group) is output
            assert F.all_gather(x, group) == F.gather(x, 0, group) == ()
        assert {warning.filename for warning in told} == {__file__}
        return [str(warning.message).split(" which")[0] for warning in told]

    names = ["broadcast", "reduce", "all_reduce", "reduce_scatter", "all_gather", "gather"]
    assert run(rank, 2) == [None, [f"Running {name} on global rank 1" for name in names]]


def test_deprecated_function_warns_at_the_call(run: Run) -> None:
    def rank() -> Any:
        x = _tensor()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            F.broadcast(x, 0)
            F.all_reduce(x)
            F.all_gather(x)
            F.reduce_scatter(torch.zeros(2), [x])
            F.all_to_all_single(torch.zeros(2), x)
            F.gather(x, 0)
            F.reduce(x, 0)
            F.scatter([x], 0)
            F.all_to_all([torch.zeros(2)], [x])
        assert {(warning.category, warning.filename) for warning in told} == {(FutureWarning, __file__)}
        return [str(warning.message).split(" is deprecated, use ") for warning in told]

    ours, theirs = "torch.distributed.nn.functional.", "torch.distributed._functional_collectives."
    assert run(rank, 1) == [
        [
            [ours + "broadcast", theirs + "broadcast instead."],
            [ours + "all_reduce", theirs + "all_reduce instead."],
            [ours + "all_gather", theirs + "all_gather_single instead."],
            [ours + "reduce_scatter", theirs + "reduce_scatter_single instead."],
            [ours + "all_to_all_single", theirs + "all_to_all_single instead."],
        ]
    ]


@pytest.mark.ranks(2)
def test_refused_call_sends_nothing(refused: Refused) -> None:
    x = _tensor()
    parts = [torch.zeros(2), torch.zeros(2)]
    refused(TypeError, lambda: F.all_reduce(3), "type torch.Tensor")
    refused(TypeError, lambda: F.all_reduce(x, 0), "should be a ReduceOp")
    refused(ValueError, lambda: F.all_reduce(x + 1j, dist.ReduceOp.MAX), "complex")
    refused(ValueError, lambda: F.broadcast(x, None), "Must specify")  # type: ignore[arg-type]
    refused(RuntimeError, lambda: F.reduce_scatter(torch.zeros(3), [x, x]), "reduce_scatter: output is")
    refused(ValueError, lambda: F.reduce_scatter(x.double(), [x, x]), "different dtypes")
    refused(ValueError, lambda: F.all_to_all_single(x.long(), x.double()), "different dtypes")
    refused(ValueError, lambda: F.scatter([x, x.double()], dist.get_rank()), "different dtypes")
    refused(RuntimeError, lambda: F.reduce_scatter(x, [x]), "should be 2")
    refused(RuntimeError, lambda: F._all_gather_base(torch.zeros(3), x), "output_tensor's shape")
    refused(RuntimeError, lambda: F.all_to_all_single(torch.zeros(3), torch.zeros(4)), "divide equally")
    refused(RuntimeError, lambda: F.all_to_all_single(torch.zeros(6), torch.zeros(4)), "output is")
    refused(RuntimeError, lambda: F.all_to_all(parts[:1], parts), "should be 2")
    refused(TypeError, lambda: F.all_to_all(5, parts), "`output_tensor_list` of type List")  # type: ignore[arg-type]
    refused(ValueError, lambda: F.all_to_all([x, x[:1].expand(2)], parts), r"output_tensor_list\[1\] is expanded")
    refused(ValueError, lambda: F.all_to_all_single(x[:1].expand(2), x), "all_to_all_single: output is expanded")
    refused(ValueError, lambda: F.all_to_all([part.long() for part in parts], parts), "different dtypes")
    refused(ValueError, lambda: F.all_reduce(x, group="a group"), "not registered")  # type: ignore[arg-type]
    assert F.all_reduce(x).tolist() == [3, 5]


def test_other_names_are_those_of_torch() -> None:
    from torch.distributed.nn import functional

    assert F._AllGather is functional._AllGather
    assert F.Function is torch.autograd.Function
