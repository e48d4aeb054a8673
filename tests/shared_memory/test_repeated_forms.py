"""Forms of calls that the compiled core repeats whole, with the results of the first call."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

import collshim.torch.distributed as dist
from collshim.torch_release import HAS_PYTHON_BACKENDS
from tests.engine.worlds import on_ranks
from tests.shared_memory.repeats import FEW, NEEDS_CORE, repeated, run

pytestmark = [pytest.mark.processes, NEEDS_CORE]


def _forms(value: float, length: int) -> dict[str, tuple[Callable[[], object], Callable[[], Any]]]:
    """Return each form of a call with tensors of this length, and how to read this rank's result."""
    rank, size = dist.get_rank(), dist.get_world_size()
    x, out, joined = torch.full((length,), value + rank), torch.empty(length), torch.empty(length * size)
    many = torch.arange(float(length) * size) + 100 * rank + value
    parts, outs, is_root = list(many.clone().chunk(size)), [torch.empty(length) for _ in range(size)], rank == 1
    each, eachs = torch.arange(1.0 * size) + 100 * rank + value, torch.empty(size)
    whole, one = x.clone(), torch.empty(1)
    return {
        "all_reduce": (lambda: dist.all_reduce(whole), lambda: whole),
        "reduce": (lambda: dist.reduce(x, 1), lambda: x),
        "broadcast": (lambda: dist.broadcast(x, 1), lambda: x),
        "all_gather": (lambda: dist.all_gather(outs, x), lambda: torch.cat(outs)),
        "all_gather_single": (lambda: dist.all_gather_single(joined, x), lambda: joined),
        "gather": (lambda: dist.gather(x, outs if is_root else None, dst=1), lambda: torch.cat(outs) if is_root else x),
        "scatter": (lambda: dist.scatter(out, parts if is_root else None, src=1), lambda: out),
        "reduce_scatter": (lambda: dist.reduce_scatter(out, parts), lambda: out),
        "reduce_scatter_single": (lambda: dist.reduce_scatter_single(out, many), lambda: out),
        "parts of one element": (lambda: dist.reduce_scatter_single(one, each), lambda: one),
        "all_to_all": (lambda: dist.all_to_all(outs, parts), lambda: torch.cat(outs)),
        "all_to_all_single": (lambda: dist.all_to_all_single(joined, many), lambda: joined),
        "all_to_all of elements": (lambda: dist.all_to_all_single(eachs, each), lambda: eachs),
        "barrier": (lambda: dist.barrier(), lambda: x),  # the line of the call counts
    }


NAMES = (
    "all_reduce", "reduce", "broadcast", "all_gather", "all_gather_single", "gather", "scatter", "reduce_scatter",
    "reduce_scatter_single", "parts of one element", "all_to_all", "all_to_all_single", "all_to_all of elements",
    "barrier",
)  # fmt: skip


def by_torch() -> list[tuple[str, bool, list[float]]]:
    """Return for functions of torch.distributed itself whether the core repeats them, and their results."""
    torch.distributed.init_process_group("collshim")
    rank, size, found = dist.get_rank(), dist.get_world_size(), []
    x, out, outs = torch.zeros(2), torch.zeros(2 * size), [torch.zeros(2) for _ in range(size)]
    forms: dict[str, tuple[Callable[[], object], Callable[[], Tensor]]] = {
        "all_reduce": (lambda: torch.distributed.all_reduce(x), lambda: x),
        "broadcast": (lambda: torch.distributed.broadcast(x, 1), lambda: x),
        "reduce": (lambda: torch.distributed.reduce(x, 0), lambda: x),
        "all_gather": (lambda: torch.distributed.all_gather(outs, x), lambda: torch.cat(outs)),
        "all_gather_single": (lambda: torch.distributed.all_gather_single(out, x), lambda: out),
        "gather": (lambda: torch.distributed.gather(x, outs if rank == 0 else None), lambda: torch.cat(outs)),
        "scatter": (lambda: torch.distributed.scatter(x, outs if rank == 0 else None), lambda: x),
        "reduce_scatter": (lambda: torch.distributed.reduce_scatter(x, outs), lambda: x),
        "reduce_scatter_single": (lambda: torch.distributed.reduce_scatter_single(x, out), lambda: x),
        "all_to_all_single": (lambda: torch.distributed.all_to_all_single(out, out.clone()), lambda: out),
        "barrier": (lambda: torch.distributed.barrier(), lambda: x),
    }
    for name, (call, result) in forms.items():
        is_repeated = repeated(call, FEW + HAS_PYTHON_BACKENDS)  # with a function for the hooks of torch 2.15
        for place, tensor in enumerate((x, out, *outs)):
            tensor.copy_(torch.arange(float(len(tensor))) + 10 * place + rank)
        call()
        found.append((name, is_repeated, result().tolist()))
    return found


def test_functions_of_torch_are_repeated_over_the_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_FR_BUFFER_SIZE", "0")  # torch 2.15's recorder sees every call
    first, second = on_ranks(by_torch, 2, "processes")
    assert [(name, is_repeated) for name, is_repeated, _ in first] == [(name, True) for name, _, _ in first]
    values = [{name: value for name, _, value in rank} for rank in (first, second)]
    assert values[0]["all_reduce"] == values[1]["all_reduce"] == values[0]["reduce"] == [1.0, 3.0]
    assert values[0]["broadcast"] == values[1]["reduce"] == [1.0, 2.0]
    assert values[1]["all_gather"] == values[1]["all_gather_single"] == values[0]["gather"] == [0.0, 1.0, 1.0, 2.0]
    assert values[1]["scatter"] == [30.0, 31.0]
    assert values[1]["reduce_scatter"] == [61.0, 63.0]
    assert values[1]["reduce_scatter_single"] == [25.0, 27.0]
    assert values[1]["all_to_all_single"] == [12.0, 13.0, 13.0, 14.0]


def first_and_later(length: int) -> list[tuple[str, bool, bool]]:
    """Return for each form whether the core repeats it, and whether it then computes what the first call computes."""
    found, firsts = [], {}
    for name in NAMES:
        call, result = _forms(3.0, length)[name]
        call()
        firsts[name] = result().clone()
    for name in NAMES:
        call, _ = _forms(1.0, length)[name]
        is_repeated = repeated(call)
        call, result = _forms(3.0, length)[name]
        call()
        found.append((name, is_repeated, torch.equal(result(), firsts[name])))
    return found


@pytest.mark.parametrize("length", [3, 30_000], ids=["small", "larger than a slot"])
@pytest.mark.parametrize("size", [2, 3])
def test_every_form_is_repeated_with_the_same_result(size: int, length: int) -> None:
    for rank in run(partial(first_and_later, length), size):
        assert rank == [(name, True, True) for name in NAMES]
