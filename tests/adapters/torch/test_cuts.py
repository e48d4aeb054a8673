"""A backward through a collective of ``torch.distributed``, which has no gradient, warns as over gloo and NCCL."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed
from torch import Tensor

import collshim
import collshim.torch.distributed as dist

SECONDS = 60

Written = Callable[[Any, Tensor, Tensor], object]
"""A call of a module's collective on a tensor that is in the graph, and on one that is not."""

CALLS: dict[str, tuple[Written, list[str]]] = {
    "broadcast": (lambda to, x, new: to.broadcast(x, 0), ["broadcast_"]),
    "all_reduce": (lambda to, x, new: to.all_reduce(x), ["allreduce_"]),
    "all_reduce async": (lambda to, x, new: to.all_reduce(x, async_op=True).wait(), ["allreduce_"]),
    "all_reduce of another": (lambda to, x, new: to.all_reduce(new), []),
    "all_reduce of its data": (lambda to, x, new: to.all_reduce(x.data), []),
    "all_reduce without gradients": (lambda to, x, new: torch.no_grad()(to.all_reduce)(x), []),
    "reduce": (lambda to, x, new: to.reduce(x, 0), []),
    "scatter": (lambda to, x, new: to.scatter(x, [new] * 2 if to.get_rank() == 0 else None, 0), ["scatter_"]),
    "scatter of the graph": (lambda to, x, new: to.scatter(new, [x] * 2 if to.get_rank() == 0 else None, 0), []),
    "reduce_scatter": (lambda to, x, new: to.reduce_scatter(x, [new] * 2), ["reduce_scatter_"]),
    "all_gather": (lambda to, x, new: to.all_gather([new, new.clone()], x), []),
    "gather": (lambda to, x, new: to.gather(x, [new, new.clone()] if to.get_rank() == 0 else None, 0), []),
    "all_to_all": (lambda to, x, new: to.all_to_all([x, new], [new.clone(), new.clone()]), ["alltoall_"]),
    "all_to_all_single": (lambda to, x, new: to.all_to_all_single(new, x), []),
    "all_reduce_coalesced": (lambda to, x, new: to.all_reduce_coalesced([x]), []),
}


FRESH = ["_allgather_base_", "_reduce_scatter_base_"]


def backward(to: Any, name: str) -> None:
    x, new = torch.ones(4, requires_grad=True) * 3, torch.zeros(4)
    CALLS[name][0](to, x, new)
    x.sum().backward()


def fresh(to: Any) -> Any:
    """Put outputs without a graph into one, through which no gradient flows."""
    leaf, part, whole = torch.ones(4, requires_grad=True), torch.zeros(2), torch.zeros(8)
    to.reduce_scatter_tensor(part, leaf * 1)
    to.all_gather_into_tensor(whole, leaf * 1)
    (part.sum() + whole.sum() + leaf.sum()).backward()
    assert leaf.grad is not None
    return part.tolist(), whole.tolist(), part.requires_grad and whole.requires_grad, leaf.grad.tolist()


FOUND = ([2.0] * 2, [1.0] * 8, True, [1.0] * 4)


def heard(told: list[warnings.WarningMessage]) -> list[str]:
    """Return the operators that warned."""
    texts = [str(warning.message) for warning in told if "autograd kernel was not registered" in str(warning.message)]
    return sorted(text.removeprefix("c10d::").partition(":")[0] for text in texts)


def each_heard(backend: str) -> dict[str, list[str]]:
    to: Any = dist if backend == "stand-in" else torch.distributed
    to.init_process_group("gloo" if backend == "stand-in" else backend)
    found = {}
    for name in CALLS:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            backward(to, name)
        found[name] = heard(told)
    to.destroy_process_group()
    return found


@pytest.mark.parametrize("backend", ["stand-in", "collshim", "gloo"])
def test_backward_warns_as_torch_does(backend: str) -> None:
    wanted = {name: operators for name, (_, operators) in CALLS.items()}
    assert collshim.launch(each_heard, 2, args=(backend,), ranks="processes", timeout=SECONDS) == [wanted] * 2


def stood_in(call: Callable[..., Any], *arguments: Any) -> Any:
    dist.init_process_group("gloo")
    return call(dist, *arguments)


@pytest.mark.parametrize("name", CALLS)
def test_backward_warns_in_threads(name: str) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        collshim.launch(stood_in, 2, args=(backward, name), timeout=SECONDS)
    assert heard(told) == CALLS[name][1] * 2


def fresh_heard(backend: str) -> Any:
    to: Any = dist if backend == "stand-in" else torch.distributed
    to.init_process_group("gloo" if backend == "stand-in" else backend)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = fresh(to)
    to.destroy_process_group()
    return found, heard(told)


@pytest.mark.parametrize("backend", ["stand-in", "collshim"])
def test_outputs_join_the_graph_and_warn(backend: str) -> None:
    """Outputs join the graph as over NCCL, by torch's dispatcher; gradients flow through gloo's by accident."""
    found = collshim.launch(fresh_heard, 2, args=(backend,), ranks="processes", timeout=SECONDS)
    assert found == [(FOUND, FRESH)] * 2


def test_outputs_join_the_graph_in_threads() -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert collshim.launch(stood_in, 2, args=(fresh,), timeout=SECONDS) == [FOUND] * 2
    assert heard(told) == sorted(FRESH * 2)
