"""The same calls on torch's own ``torch.distributed`` over gloo and on collshim's, in the same processes, side by side.

A call's outcome is what it returned and left in its arguments with what it warned of, or the class of what it raised.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as gloo
from torch import Tensor

import collshim
import collshim.torch.distributed as dist

SIZE = 3
Op = torch.distributed.ReduceOp
Call = Callable[[Any, int], Any]
FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
INTEGERS = [torch.int64, torch.int32, torch.int8, torch.uint8]


def _tensor(rank: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return (torch.arange(SIZE) + 1 + rank).to(dtype)


def _reductions(d: Any, rank: int) -> Any:
    """Every op on every dtype that gloo reduces."""
    found = []
    for dtype in (*FLOATS, *INTEGERS):
        for op in (Op.SUM, Op.PRODUCT, Op.MIN, Op.MAX):
            d.all_reduce(tensor := _tensor(rank, dtype), op)
            found.append(tensor.double().tolist())
    for op in (Op.BAND, Op.BOR, Op.BXOR):
        d.all_reduce(tensor := _tensor(rank, torch.int64), op)
        found.append(tensor.tolist())
    return found


def _averages(d: Any, rank: int) -> Any:
    found = []
    for dtype in FLOATS:
        d.all_reduce(tensor := _tensor(rank, dtype), Op.AVG)
        found.append(tensor.double().tolist())
    return found


def _on_root(d: Any, rank: int) -> Any:
    """``reduce`` leaves partial sums off the root over gloo, which is no convention."""
    d.reduce(tensor := _tensor(rank), 1)
    return tensor.tolist() if rank == 1 else None


def _groups(d: Any, rank: int) -> Any:
    group, turned = d.new_group([2, 0]), d.new_group([2, 0], sort_ranks=False)
    asked = [d.get_rank(group), d.get_world_size(group), d.get_rank(turned)]
    if rank == 1:
        return [*asked, group, turned]
    d.all_gather(gathered := [torch.zeros(SIZE), torch.zeros(SIZE)], _tensor(rank), turned)
    d.broadcast(moved := _tensor(rank), group_src=0, group=turned)
    asked += [d.get_process_group_ranks(turned), d.get_global_rank(turned, 0), d.get_group_rank(turned, 0)]
    return [*asked, [tensor.tolist() for tensor in (*gathered, moved)]]


def _outside(d: Any, rank: int) -> Any:
    group, tensor = d.new_group([0]), torch.zeros(1)
    if rank == 0:
        return None
    calls = [
        d.all_reduce(tensor, group=group),
        d.broadcast(tensor, 0, group),
        d.gather(tensor, group=group),
        d.all_to_all_single(tensor, tensor, group=group),
        d.barrier(group),
        d.isend(tensor, 0, group),
        d.recv(tensor, 0, group),
    ]
    return calls


def _pairs(d: Any, rank: int) -> Any:
    if rank == 0:
        return [d.send(_tensor(rank), 1), d.isend(_tensor(rank), 2, tag=7).wait()]
    if rank == 1:
        return [d.recv(tensor := torch.zeros(SIZE)), tensor.tolist()]
    work = d.irecv(tensor := torch.zeros(SIZE), 0, tag=7)
    return [work.wait(), work.is_completed(), tensor.tolist()]


def _works(d: Any, rank: int) -> Any:
    work = d.all_reduce(tensor := _tensor(rank), async_op=True)
    return [work.wait(), work.is_completed(), work.is_success(), work.exception(), tensor.tolist()]


def _layouts(d: Any, rank: int) -> Any:
    turned, sliced, empty = torch.arange(6.0).view(2, 3).t() + rank, torch.arange(8.0), torch.zeros(0)
    d.all_reduce(turned)
    d.broadcast(sliced[::2], 1)
    d.all_reduce(empty)
    d.all_reduce(scalar := torch.tensor(1.0))
    return [tensor.tolist() for tensor in (turned, sliced, empty, scalar)]


def _scattered(d: Any, rank: int) -> Any:
    parts = [_tensor(rank) * part for part in range(SIZE)]
    d.scatter(scattered := torch.zeros(SIZE), parts if rank == 1 else None, src=1)
    d.reduce_scatter(summed := torch.zeros(SIZE), parts)
    d.reduce_scatter_single(highest := torch.zeros(SIZE), torch.cat(parts), Op.MAX)
    return [tensor.tolist() for tensor in (scattered, summed, highest)]


def _gathered(d: Any, rank: int) -> Any:
    outputs = [torch.zeros(SIZE) for _ in range(SIZE)]
    d.gather(_tensor(rank), outputs if rank == 2 else None, dst=2)
    d.all_gather_single(joined := torch.zeros(SIZE * SIZE), _tensor(rank))
    d.all_gather(pairs := [torch.zeros(SIZE, 2) for _ in range(SIZE)], _tensor(rank) * (1 + 1j))
    return [tensor.tolist() for tensor in (*outputs, joined, *pairs)]


def _exchanged(d: Any, rank: int) -> Any:
    d.all_to_all(parts := [torch.zeros(1) for _ in range(SIZE)], list(_tensor(rank).chunk(SIZE)))
    d.all_to_all_single(equal := torch.zeros(SIZE), _tensor(rank))
    sizes = [rank + 1] * SIZE, [1, 2, 3]  # rank r gets r + 1 elements from everybody
    d.all_to_all_single(unequal := torch.zeros(SIZE * (rank + 1)), torch.arange(6.0) + rank, *sizes)
    return [tensor.tolist() for tensor in (*parts, equal, unequal)]


def _large(d: Any, rank: int) -> Any:
    """More than travels with the description of a call."""
    whole = torch.arange(30_000.0) + rank
    d.all_reduce(total := whole.clone())
    d.all_gather_single(joined := torch.zeros(SIZE * 30_000), whole)
    d.all_to_all_single(exchanged := torch.zeros(30_000), whole)
    d.reduce_scatter_single(part := torch.zeros(10_000), whole)
    work = d.isend(whole, (rank + 1) % SIZE)
    source = d.recv(received := torch.zeros(30_000), (rank - 1) % SIZE)
    outputs = (total, joined, exchanged, part, received)
    return [work.wait(), source, [tensor.double().sum().item() for tensor in outputs]]


F, INT, C = torch.zeros(2), torch.zeros(2, dtype=torch.int32), torch.zeros(2, dtype=torch.complex64)
CALLS: dict[str, Call] = {
    "reductions": _reductions,
    "averages": _averages,
    "reduce": _on_root,
    "groups": _groups,
    "outside": _outside,
    "pairs": _pairs,
    "works": _works,
    "layouts": _layouts,
    "scattered": _scattered,
    "gathered": _gathered,
    "exchanged": _exchanged,
    "large": _large,
    "complex sum": lambda d, rank: [d.all_reduce(tensor := _tensor(rank) * 1j), tensor.tolist()],
    "ranks": lambda d, rank: [d.get_rank(), d.get_world_size(), d.get_rank(-100), d.get_world_size(-100)],
    "names": lambda d, rank: [d.get_backend(), d.is_initialized(), d.group.WORLD.group_name, d.group.WORLD.size()],
    "old names": lambda d, rank: [
        d.all_gather_into_tensor(torch.zeros(9), F.new_zeros(3)),
        d.reduce_scatter_tensor(torch.zeros(3), torch.zeros(9)),
    ],
    "no tensor": lambda d, rank: d.all_reduce([1.0]),
    "no tensor to broadcast": lambda d, rank: d.broadcast(None, 0),
    "tuple": lambda d, rank: d.all_gather((F, F, F), F),
    "tuple of parts": lambda d, rank: d.all_to_all([F, F, F], (F, F, F)),
    "not all tensors": lambda d, rank: d.all_gather([F, F, None], F),
    "dtypes differ": lambda d, rank: d.all_gather([F, F, F], INT),
    "dtypes differ in all_to_all": lambda d, rank: d.all_to_all([INT] * SIZE, [C] * SIZE),
    "dtypes differ in all_gather_single": lambda d, rank: d.all_gather_single(torch.zeros(6, dtype=torch.int64), F),
    "op is no ReduceOp": lambda d, rank: d.all_reduce(F, 0),
    "op is a string": lambda d, rank: d.reduce(F, 0, "sum"),
    "bits of floats": lambda d, rank: d.all_reduce(torch.zeros(2), Op.BXOR),
    "order of complex": lambda d, rank: d.all_reduce(C, Op.MAX),
    "list too short": lambda d, rank: d.all_gather([F], F),
    "wrong shape": lambda d, rank: d.all_gather([torch.zeros(3)] * SIZE, F),
    "same count, other shape": lambda d, rank: d.all_gather([torch.zeros(1, 2)] * SIZE, F),
    "wrong size": lambda d, rank: d.all_gather_single(torch.zeros(5), F),
    "wrong input size": lambda d, rank: d.reduce_scatter_single(F, torch.zeros(5)),
    "wrong number of parts": lambda d, rank: d.reduce_scatter(F, [F]),
    "wrong number of outputs": lambda d, rank: d.all_to_all([F], [F, F, F]),
    "sizes do not add up": lambda d, rank: d.all_to_all_single(F, F, [1, 1, 1], [1, 1, 1]),
    "wrong number of sizes": lambda d, rank: d.all_to_all_single(F, F, [2], [2]),
    "sizes are no ints": lambda d, rank: d.all_to_all_single(F, F, [0.5], [2]),
    "no source": lambda d, rank: d.broadcast(F),
    "two sources": lambda d, rank: d.broadcast(F, 0, group_src=0),
    "a source that is none": lambda d, rank: d.broadcast(F, 99),
    "a source that is no int": lambda d, rank: d.broadcast(F, 0.5),
    "a destination that is none": lambda d, rank: d.reduce(F, -1),
    "list on the wrong rank": lambda d, rank: d.gather(F, None if rank == 0 else [F] * SIZE, 0),
    "parts on the wrong rank": lambda d, rank: d.scatter(F, None if rank == 0 else [F] * SIZE, 0),
    "send to itself": lambda d, rank: d.send(F, rank),
    "group twice the same": lambda d, rank: d.new_group([0, 0]),
    "group out of range": lambda d, rank: d.new_group([0, 9]),
    "group of none": lambda d, rank: d.new_group([]),
    "group of an unknown backend": lambda d, rank: d.new_group(backend="nope"),
    "timeout is no timedelta": lambda d, rank: d.new_group([0], timeout=3),
    "timeout of a barrier": lambda d, rank: d.barrier(timeout=3),
    "backend outside": lambda d, rank: d.get_backend(-100),
    "rank in no group": lambda d, rank: d.get_group_rank(None, 0),
    "init twice": lambda d, rank: d.init_process_group("gloo"),
    "destroy what is no group": lambda d, rank: d.destroy_process_group(5),
}


def _outcome(d: Any, rank: int, call: Call) -> list[Any] | type[Exception]:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            returned = call(d, rank)
        except Exception as error:
            return type(error)
    texts = [str(entry.message) if entry.category is UserWarning else entry.category.__name__ for entry in told]
    return [returned, texts]


def _alike(theirs: list[Any] | type[Exception], ours: list[Any] | type[Exception]) -> bool:
    """The same, or an error of torch's class that is ours too."""
    if isinstance(theirs, type) and isinstance(ours, type):
        return issubclass(ours, theirs) and issubclass(ours, collshim.CollshimError)
    return theirs == ours


def _differences(where: str) -> list[str]:
    """On one rank: the calls whose outcomes differ, in words."""
    rank = collshim.current().rank
    store, patience = gloo.FileStore(where, SIZE), timedelta(seconds=30)
    gloo.init_process_group("gloo", store=store, rank=rank, world_size=SIZE, timeout=patience)
    dist.init_process_group("gloo", timeout=patience)
    outcomes = {name: (_outcome(gloo, rank, call), _outcome(dist, rank, call)) for name, call in CALLS.items()}
    gloo.destroy_process_group()
    return [f"{name}: torch {one}, collshim {two}" for name, (one, two) in outcomes.items() if not _alike(one, two)]


@pytest.mark.skipif(not hasattr(gloo, "all_gather_single"), reason="the calls are those of torch 2.13")
@pytest.mark.timeout(110)
def test_every_call_has_torchs_outcome(tmp_path: Path) -> None:
    where = str(tmp_path / "store")
    assert collshim.launch(_differences, SIZE, ranks="processes", args=(where,), timeout=90) == [[]] * SIZE
