"""``torch.distributed``'s collectives: they return None or a work, and write their outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from collshim.conformance.bindings.answers import Handle, Tree
from collshim.conformance.bindings.barriers import Barrier
from collshim.conformance.bindings.binding import Binding
from collshim.conformance.bindings.spelling import Spelling
from collshim.conformance.spellings.torch.common import (
    ANY,
    AVERAGES,
    BAD_LISTS,
    CONTIGUOUS,
    EXCHANGE,
    FRAMEWORK,
    NO_ARRAY,
    NO_SUCH_ROOT,
    PARTS,
    PATH,
    ROWS,
    SUMS,
    UNORDERED,
    spelled,
)

_POSTS_TWO = "one call moves several tensors: a peer would have to make the same coalesced call"
_REPORTS = "it is made of messages: each rank reports to the first"


def _in_place(collective: str, takes: Mapping[str, str], **more: Any) -> Spelling:
    return spelled(collective, collective, {"tensor": "inout", **takes}, result="tensor", **more)


def _stacked(spelling: Spelling) -> Spelling:
    return replace(spelling, form="stacked", arrangement="stacked", admits=replace(spelling.admits, least_ndim=0))


def _all_gather_into(name: str) -> tuple[Spelling, ...]:
    takes = {"output_tensor": "out", "input_tensor": "array"}
    joined = spelled(name, "all_gather", takes, result="output_tensor", arrangement="joined", admits=ROWS)
    return joined, _stacked(joined)


def _reduce_scatter_into(name: str) -> tuple[Spelling, ...]:
    takes = {"output": "out", "input": "array of whole", "op": "ReduceOp"}
    rows = replace(AVERAGES, least_ndim=1)
    joined = spelled(name, "reduce_scatter", takes, result="output", arrangement="joined", admits=rows)
    return joined, _stacked(joined)


_ALL_GATHER = spelled(
    "all_gather",
    "all_gather",
    {"tensor_list": "exact list of outs", "tensor": "array"},
    result="tensor_list",
    loose=True,
    admits=replace(ANY, ragged=True),
    refused=BAD_LISTS,
    example="""\
x = torch.tensor([1, 2]) + 10 * rank
outs = [torch.zeros(2, dtype=torch.int64) for _ in range(size)]
dist.all_gather(outs, x)
""",
    notes=(
        (
            "The tensors in the list are written: if they are views of one buffer, they fill it. They must exist, "
            "with the right shape and dtype."
        ),
        (
            "Autograd does not see it: to train through it, call `dist.nn.functional.all_gather(x)`, which "
            "returns a tuple."
        ),
        ("`all_gather_single(output, x)` fills one tensor; until torch 2.12 it was `all_gather_into_tensor`."),
    ),
)
_ALL_TO_ALL = spelled(
    "all_to_all",
    "all_to_all",
    {"output_tensor_list": "exact list of outs", "input_tensor_list": "exact list of parts"},
    result="output_tensor_list",
    admits=EXCHANGE,
    refused=BAD_LISTS[1:],
    example="""\
parts = [torch.tensor([1, 2]) + 10 * rank, torch.tensor([3, 4]) + 10 * rank]
outs = [torch.zeros(2, dtype=torch.int64) for _ in range(size)]
dist.all_to_all(outs, parts)
""",
    notes=(
        "Parts may be unequal, which gloo refuses.",
        ("`all_to_all_single(output, input, output_split_sizes, input_split_sizes)` takes one tensor each way."),
    ),
)
_ALL_TO_ALL_SINGLE = spelled(
    "all_to_all_single",
    "all_to_all",
    {
        "output": "out",
        "input": "array of whole",
        "output_split_sizes": "optional rows from each",
        "input_split_sizes": "optional rows to each",
    },
    result="output",
    arrangement="joined",
    admits=EXCHANGE,
)
_ALL_REDUCE = _in_place(
    "all_reduce",
    {"op": "ReduceOp"},
    admits=SUMS,
    refused=(UNORDERED, NO_ARRAY),
    example="""\
x = torch.tensor([1, 2]) + 10 * rank
dist.all_reduce(x)
""",
    notes=(
        "`op` is `dist.ReduceOp.SUM`, `AVG`, `PRODUCT`, `MIN`, `MAX`, `BAND`, `BOR` or `BXOR`.",
        "Autograd does not see it: to train, call `dist.nn.functional.all_reduce(x)`, which returns the result.",
    ),
)
_REDUCE = spelled(
    "reduce",
    "reduce",
    {"tensor": "inout@root", "dst": "root", "op": "ReduceOp"},
    result="tensor",
    admits=SUMS,
    refused=(NO_ARRAY,),
    example="""\
x = torch.tensor([1, 2]) + 10 * rank
dist.reduce(x, 0)
""",
    notes=("Over gloo the other ranks' tensors hold partial sums afterwards; do not read them in any framework.",),
)
_REDUCE_SCATTER = spelled(
    "reduce_scatter",
    "reduce_scatter",
    {"output": "out", "input_list": "exact list of parts", "op": "ReduceOp"},
    result="output",
    admits=replace(AVERAGES, layouts=CONTIGUOUS, ragged=True),
    refused=BAD_LISTS,
    example="""\
parts = [torch.tensor([1, 2]) + 10 * rank, torch.tensor([3, 4]) + 10 * rank]
out = torch.zeros(2, dtype=torch.int64)
dist.reduce_scatter(out, parts)
""",
    notes=(
        "Parts may differ in length if the `r`-th parts of all ranks have the same shape.",
        ("`reduce_scatter_single(output, input)` takes one tensor; until torch 2.12 it was `reduce_scatter_tensor`."),
    ),
)
_BROADCAST = _in_place(
    "broadcast",
    {"src": "root"},
    admits=ANY,
    refused=(NO_ARRAY, NO_SUCH_ROOT),
    example="""\
x = torch.tensor([1, 2]) + 10 * rank
dist.broadcast(x, 0)
""",
    notes=("`src` is a global rank, even in a group; `group_src` is a rank in the group.",),
)
_GATHER = spelled(
    "gather",
    "gather",
    {"tensor": "array", "gather_list": "exact list of outs@root", "dst": "optional root"},
    result="gather_list",
    only_root=("gather_list",),
    admits=PARTS,
    example="""\
x = torch.tensor([1, 2]) + 10 * rank
outs = [torch.zeros(2, dtype=torch.int64) for _ in range(size)] if rank == 0 else None
dist.gather(x, outs, 0)
""",
    notes=("The list is passed after the tensor. A rank that is not the root must pass None: torch refuses a list.",),
)
_SCATTER = spelled(
    "scatter",
    "scatter",
    {"tensor": "out@root", "scatter_list": "exact list of parts@root", "src": "optional root"},
    result="tensor",
    only_root=("scatter_list",),
    admits=PARTS,
    example="""\
parts = [torch.tensor([1, 2]), torch.tensor([3, 4])] if rank == 0 else None
out = torch.zeros(2, dtype=torch.int64)
dist.scatter(out, parts, 0)
""",
    notes=("A rank that is not the root must pass None as the list: torch refuses a list there.",),
)
_BOTH_WAYS = (
    _ALL_GATHER,
    *_all_gather_into("all_gather_single"),
    *_all_gather_into("all_gather_into_tensor"),
    _ALL_TO_ALL,
    _ALL_TO_ALL_SINGLE,
    _ALL_REDUCE,
    _REDUCE,
    _REDUCE_SCATTER,
    *_reduce_scatter_into("reduce_scatter_single"),
    *_reduce_scatter_into("reduce_scatter_tensor"),
    _BROADCAST,
    _GATHER,
    _SCATTER,
)


def _by_group_rank(spelling: Spelling, name: str) -> Spelling:
    """Return the same spelling with the root as a rank in the group."""
    takes = {f"group_{name}" if old == name else old: role for old, role in spelling.takes.items()}
    return replace(spelling, form=f"group_{name}", takes=takes | {f"group_{name}": "root in the group"}, refused=())


def _coalesced(name: str, takes: Mapping[str, str], **more: Any) -> Spelling:
    return spelled(f"{name}_coalesced", name, takes, coalesced=True, alone=_POSTS_TWO, **more)


_SEVERAL = (
    _coalesced(
        "all_reduce",
        {"tensors": "list of inouts", "op": "ReduceOp"},
        result="tensors",
        admits=replace(AVERAGES, layouts=CONTIGUOUS),
    ),
    _coalesced(
        "all_gather",
        {"output_tensor_lists": "lists of outs", "input_tensor_list": "list of parts"},
        result="output_tensor_lists",
        admits=PARTS,
    ),
)


def _done(value: Tree) -> Tree:
    return Handle(True)


def _asynchronous(spelling: Spelling) -> Spelling:
    form = f"{spelling.form}, async" if spelling.form else "async"
    return replace(spelling, form=form, options={"async_op": True}, wrap=_done)


_BARRIER = Barrier(
    framework=FRAMEWORK,
    path=PATH + "barrier",
    admits=ANY,
    example="""\
dist.barrier()
""",
    notes=("`monitored_barrier` reports the ranks that did not arrive.",),
)
WRITTEN: tuple[Binding, ...] = (
    *_BOTH_WAYS,
    *map(_asynchronous, _BOTH_WAYS),
    _by_group_rank(_BROADCAST, "src"),
    _by_group_rank(_REDUCE, "dst"),
    _by_group_rank(_GATHER, "dst"),
    _by_group_rank(_SCATTER, "src"),
    *_SEVERAL,
    _BARRIER,
    replace(_BARRIER, form="async", options={"async_op": True}, done=True),
    replace(_BARRIER, path=PATH + "monitored_barrier", alone=_REPORTS),
)
