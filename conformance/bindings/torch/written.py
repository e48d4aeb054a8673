"""``torch.distributed``'s collectives: None or a work comes back, and what is given as output is written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from collshim.conformance.bindings.admits import Admits
from collshim.conformance.bindings.barriers import Barrier
from collshim.conformance.bindings.binding import Binding, group_root_as, root_as
from collshim.conformance.bindings.exchanges import AllToAllSingle
from collshim.conformance.bindings.joined_outputs import AllGatherInto, ReduceScatterInto
from collshim.conformance.bindings.output_lists import (
    AllGatherList,
    AllToAllList,
    GatherList,
    ReduceScatterList,
    ScatterList,
)
from collshim.conformance.bindings.outputs import (
    AllGatherCoalesced,
    AllReduceCoalesced,
    AllReduceInPlace,
    BroadcastInPlace,
    ReduceInPlace,
    Writes,
)
from collshim.conformance.bindings.torch.common import (
    ANY,
    BAD_LISTS,
    CONTIGUOUS,
    DTYPES,
    EXCHANGE,
    FRAMEWORK,
    JOINED,
    NO_ARRAY,
    NO_SUCH_ROOT,
    OPS,
    PATH,
    RAGGED,
    SUMS,
    UNORDERED,
    op,
)

_SCATTERED = Admits(dtypes=DTYPES, groups="ordered", layouts=CONTIGUOUS, reduce_ops=tuple(OPS), ragged=True)
_SUMMED_ROWS = Admits(dtypes=DTYPES, groups="ordered", reduce_ops=tuple(OPS), least_ndim=1)
_SUMMED_STACK = Admits(dtypes=DTYPES, groups="ordered", reduce_ops=tuple(OPS))
_PARTS = Admits(dtypes=DTYPES, groups="ordered", layouts=CONTIGUOUS)
_SEVERAL = Admits(dtypes=DTYPES, groups="ordered", layouts=CONTIGUOUS)
_SEVERAL_SUMS = Admits(dtypes=DTYPES, groups="ordered", layouts=CONTIGUOUS, reduce_ops=tuple(OPS))
_POSTS_TWO = "one call moves several tensors: a peer would have to make the same coalesced call"

_REPORTS = "it is made of messages: each rank reports to the first"


def _bound(binding: type[Writes], name: str, **more: Any) -> Writes:
    return binding(framework=FRAMEWORK, path=PATH + name, **more)


def _gathers() -> tuple[Writes, ...]:
    return (
        _bound(AllGatherList, "all_gather", admits=RAGGED, loose=True, refused=BAD_LISTS),
        _bound(AllGatherInto, "all_gather_single", admits=JOINED),
        _bound(AllGatherInto, "all_gather_single", form="stacked", admits=ANY, output="stacked"),
        _bound(AllGatherInto, "all_gather_into_tensor", admits=JOINED),
        _bound(AllGatherInto, "all_gather_into_tensor", form="stacked", admits=ANY, output="stacked"),
        _bound(AllToAllList, "all_to_all", admits=EXCHANGE, refused=BAD_LISTS[1:]),
        _bound(AllToAllSingle, "all_to_all_single", admits=EXCHANGE),
    )


def _reductions() -> tuple[Writes, ...]:
    single, tensor = "reduce_scatter_single", "reduce_scatter_tensor"
    summed: dict[str, Any] = {"admits": _SUMMED_STACK, "with_op": op, "form": "stacked", "input": "stacked"}
    return (
        _bound(AllReduceInPlace, "all_reduce", admits=SUMS, with_op=op, refused=(UNORDERED, NO_ARRAY)),
        _bound(ReduceInPlace, "reduce", admits=SUMS, with_op=op, with_root=root_as("dst"), refused=(NO_ARRAY,)),
        _bound(ReduceScatterList, "reduce_scatter", admits=_SCATTERED, with_op=op, refused=BAD_LISTS),
        _bound(ReduceScatterInto, single, admits=_SUMMED_ROWS, with_op=op),
        _bound(ReduceScatterInto, single, **summed),
        _bound(ReduceScatterInto, tensor, admits=_SUMMED_ROWS, with_op=op),
        _bound(ReduceScatterInto, tensor, **summed),
    )


def _rooted() -> tuple[Writes, ...]:
    return (
        _bound(BroadcastInPlace, "broadcast", admits=ANY, with_root=root_as("src"), refused=(NO_ARRAY, NO_SUCH_ROOT)),
        _bound(GatherList, "gather", admits=_PARTS, with_root=root_as("dst")),
        _bound(ScatterList, "scatter", admits=_PARTS, with_root=root_as("src")),
    )


def _by_group_rank() -> tuple[Writes, ...]:
    return (
        _bound(BroadcastInPlace, "broadcast", form="group_src", admits=ANY, with_root=group_root_as("group_src")),
        _bound(
            ReduceInPlace, "reduce", form="group_dst", admits=SUMS, with_op=op, with_root=group_root_as("group_dst")
        ),
        _bound(GatherList, "gather", form="group_dst", admits=_PARTS, with_root=group_root_as("group_dst")),
        _bound(ScatterList, "scatter", form="group_src", admits=_PARTS, with_root=group_root_as("group_src")),
    )


def _coalesced() -> tuple[Writes, ...]:
    return (
        _bound(AllReduceCoalesced, "all_reduce_coalesced", admits=_SEVERAL_SUMS, with_op=op, alone=_POSTS_TWO),
        _bound(AllGatherCoalesced, "all_gather_coalesced", admits=_SEVERAL, alone=_POSTS_TWO),
    )


def _asynchronous(binding: Writes) -> Binding:
    form = f"{binding.form}, async" if binding.form else "async"
    return replace(binding, form=form, options={"async_op": True}, done=True)


_BARRIER = Barrier(framework=FRAMEWORK, path=PATH + "barrier", admits=ANY)
_BOTH_WAYS = (*_gathers(), *_reductions(), *_rooted())
WRITTEN: tuple[Binding, ...] = (
    *_BOTH_WAYS,
    *map(_asynchronous, _BOTH_WAYS),
    *_by_group_rank(),
    *_coalesced(),
    _BARRIER,
    replace(_BARRIER, form="async", options={"async_op": True}, done=True),
    replace(_BARRIER, path=PATH + "monitored_barrier", alone=_REPORTS),
)
