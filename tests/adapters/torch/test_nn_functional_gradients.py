"""Gradients of nn.functional: the derivative of the sum of all losses, checked against torch and by differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as torchs
from torch import Tensor

import collshim
import collshim.torch.distributed as dist
from collshim.torch.distributed.nn import functional as F
from tests.adapters.conftest import Run, each_of

SIZE, ROOT = 3, 1
Op = torchs.ReduceOp
Call = Callable[[Any, Tensor], Any]

pytestmark = pytest.mark.filterwarnings("ignore:.*is deprecated, use:FutureWarning")


def _blank(x: Tensor, count: int = 1) -> Tensor:
    return torch.zeros(count * x.numel(), dtype=x.dtype)


MOVING: dict[str, Call] = {
    "broadcast": lambda f, x: f.broadcast(x, ROOT),
    "gather": lambda f, x: f.gather(x, ROOT),
    "scatter": lambda f, x: f.scatter([x, 2 * x, 3 * x], ROOT),
    "all_gather": lambda f, x: f.all_gather(x),
    "all_to_all": lambda f, x: f.all_to_all([_blank(x) for _ in range(SIZE)], [x, 2 * x, 3 * x]),
    "all_to_all_single": lambda f, x: f.all_to_all_single(_blank(x, SIZE), torch.cat([x, 2 * x, 3 * x])),
}
BASE: dict[str, Call] = {"_all_gather_base": lambda f, x: f._all_gather_base(_blank(x, SIZE), x)}
OPS = {"SUM": Op.SUM, "AVG": Op.AVG, "MAX": Op.MAX, "MIN": Op.MIN, "PRODUCT": Op.PRODUCT}
REDUCING: dict[str, Callable[[Any], Call]] = {
    "all_reduce": lambda op: lambda f, x: f.all_reduce(x, op),
    "reduce": lambda op: lambda f, x: f.reduce(x, ROOT, op),
    "reduce_scatter": lambda op: lambda f, x: f.reduce_scatter(_blank(x), [x, 2 * x, 3 * x], op),
}
REDUCTIONS = {f"{name} {op}": REDUCING[name](OPS[op]) for name in REDUCING for op in OPS}


def _own(dtype: torch.dtype = torch.float64) -> Tensor:
    """Return values in an order that differs between the elements."""
    rank = collshim.current().rank
    return torch.tensor([[0.5, 3.0], [1.5, -2.0], [-1.0, 0.75]], dtype=dtype)[rank]


def _loss(name: str, call: Call, f: Any, x: Tensor) -> Tensor:
    """Return this rank's loss; the off-root output of ``reduce`` has no meaning, so it does not count."""
    found = call(f, x)
    parts = found if isinstance(found, tuple) else (found,)
    rank = collshim.current().rank
    weight = 0.0 if name.startswith("reduce ") and rank != ROOT else rank + 1.0
    return torch.stack([((place + weight) * part.sin()).sum() for place, part in enumerate(parts)]).sum() * weight


def _by_graph(name: str, call: Call) -> list[float]:
    x = _own().requires_grad_()
    _loss(name, call, F, x).backward()
    assert x.grad is not None
    return [float(number) for number in x.grad]


def _by_differences(name: str, call: Call, step: float = 1e-5) -> list[float]:
    """Change each number of each rank slightly and measure the sum of all ranks' losses."""
    mine: list[float] = []
    for rank in range(SIZE):
        for place in range(2):
            move = torch.zeros(2, dtype=torch.float64)
            move[place] = step if dist.get_rank() == rank else 0
            there, back = (_loss(name, call, F, _own() + sign * move) for sign in (1, -1))
            dist.all_reduce(slope := (there - back) / (2 * step))
            mine += [float(slope)] if dist.get_rank() == rank else []
    return mine


@pytest.mark.parametrize("name", BASE)
def test_gradients_are_slopes_of_the_summed_loss(run: Run, name: str) -> None:
    call = BASE[name]
    for graph, slopes in run(lambda: (_by_graph(name, call), _by_differences(name, call)), SIZE):
        assert graph == pytest.approx(slopes, rel=1e-6, abs=1e-8)


def test_factor_counts_in_the_gradient(run: Run) -> None:
    op: Any = torchs._make_nccl_premul_sum(2.5)
    calls = {f"{name} PREMUL_SUM": reduce(op) for name, reduce in REDUCING.items()}

    def rank() -> Any:
        return [(_by_graph(name, call), _by_differences(name, call)) for name, call in calls.items()]

    for found in run(rank, SIZE):
        assert all(graph == pytest.approx(slopes, rel=1e-6, abs=1e-8) for graph, slopes in found)


@each_of(SIZE, gives=[[3 + 1 + 1 + 3] * 2, None, None])
def test_rank_without_requires_grad_joins() -> Any:
    x = _own().requires_grad_(dist.get_rank() == 0)
    for call in (F.all_reduce, lambda x: F.reduce(x, ROOT), lambda x: F.gather(x, ROOT)[0], F.all_gather):
        found = call(x)
        torch.stack([part.sum() for part in (found if isinstance(found, tuple) else (found,))]).sum().backward()
    return None if x.grad is None else x.grad.tolist()


ALIKE = [*MOVING, "all_reduce SUM", "all_reduce AVG", "reduce SUM", "reduce_scatter SUM"]
"""Functions whose gradients equal torch's over gloo; docs/gradients.md describes the others."""


def _gradients(f: Any, call: Call) -> Any:
    x = _own(torch.float32).requires_grad_()
    found = call(f, x)
    parts = found if isinstance(found, tuple) else (found,)
    weight = collshim.current().rank + 1.0
    try:
        torch.stack([((place + weight) * part).sum() for place, part in enumerate(parts)]).sum().backward()
    except RuntimeError as error:
        return str(error)
    assert x.grad is not None
    return x.grad.tolist()


def _beside_torch(where: str) -> dict[str, tuple[Any, Any]]:
    import torch.distributed.nn.functional as theirs

    warnings.simplefilter("ignore", FutureWarning)
    place = {"rank": collshim.current().rank, "world_size": SIZE}
    torchs.init_process_group("gloo", store=torchs.FileStore(where, SIZE), **place)  # type: ignore[arg-type]
    dist.init_process_group("gloo")
    calls = (MOVING | BASE | REDUCTIONS).items()
    found = {name: (_gradients(theirs, call), _gradients(F, call)) for name, call in calls}
    dist.destroy_process_group()
    torchs.destroy_process_group()
    return found


@pytest.mark.timeout(110)
@pytest.mark.skipif(not torch.__version__.startswith("2.13."), reason="the factors are torch 2.13's")
def test_torch_gradients_match_the_docs(tmp_path: Any) -> None:
    with collshim.options(timeout=60):
        arguments = (str(tmp_path / "store"),)
        ranks = collshim.launch(_beside_torch, SIZE, ranks="processes", args=arguments, timeout=200)
    for found in ranks:
        assert [name for name, (theirs, ours) in found.items() if theirs == pytest.approx(ours)] == ALIKE
        assert found["_all_gather_base"][0] == "Backend not supported!"
        for op in ("AVG", "MAX", "MIN", "PRODUCT"):
            for name in ("reduce", "reduce_scatter"):
                assert found[f"{name} {op}"][0] == found[f"{name} SUM"][0]
    weights = [rank + 1.0 for rank in range(SIZE)]
    reduced = {"MAX": max(weights), "MIN": min(weights), "PRODUCT": 1.0 * 2 * 3}
    assert [ranks[0][f"all_reduce {op}"][0] for op in reduced] == [[weight] * 2 for weight in reduced.values()]
