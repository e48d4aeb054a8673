"""``mindspore.mint.distributed`` and ``mindspore.ops.communication``: torch's spelling, with groups by name.

None or a handle comes back. Lists are given on every rank, and left as they are off the root.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from collshim.conformance.bindings.admits import Admits
from collshim.conformance.bindings.barriers import Barrier
from collshim.conformance.bindings.binding import Binding, root_as
from collshim.conformance.bindings.exchanges import AllToAllCounts, AllToAllSingle
from collshim.conformance.bindings.joined_outputs import (
    AllGatherInto,
    AllGatherUneven,
    GatherInto,
    ReduceScatterInto,
    ScatterInto,
)
from collshim.conformance.bindings.mindspore.common import (
    ANY,
    CONTIGUOUS,
    EXCHANGED,
    FRAMEWORK,
    GATHERED,
    MOVED,
    OPS,
    SUMMED,
    named_op,
    within,
)
from collshim.conformance.bindings.mindspore.messages import messages_in_place
from collshim.conformance.bindings.objects import (
    AllGatherObject,
    BroadcastObjects,
    GatherObject,
    RingObjects,
    ScatterObjects,
)
from collshim.conformance.bindings.output_lists import (
    AllGatherList,
    AllToAllList,
    GatherList,
    ReduceScatterList,
    ScatterList,
)
from collshim.conformance.bindings.outputs import AllReduceInPlace, BroadcastInPlace, ReduceInPlace, Writes

_AVERAGED = (*OPS, "avg")
_SUMS = Admits(dtypes=SUMMED, groups="ordered", reduce_ops=_AVERAGED)
_PARTS = Admits(dtypes=MOVED, groups="ordered", layouts=CONTIGUOUS)
_SUMMED_PARTS = Admits(dtypes=SUMMED, groups="ordered", layouts=CONTIGUOUS, reduce_ops=_AVERAGED)
_SUMMED_ROWS = Admits(dtypes=SUMMED, groups="ordered", reduce_ops=_AVERAGED, least_ndim=1)
_UNEVEN = Admits(dtypes=MOVED, groups="ordered", ragged=True, least_ndim=1)
_NO_PRODUCT = tuple(op for op in _AVERAGED if op != "prod")
_SUMMED_UNEVEN = Admits(
    dtypes=SUMMED, groups="ordered", layouts=CONTIGUOUS, reduce_ops=_NO_PRODUCT, ragged=True, least_ndim=1
)
_OBJECTS = Admits(dtypes=("float32",), groups="ordered")
_ALL_KNOW = "it counts elements: a peer that counts rows meets it only where parts are flat"


def _both_ways(path: str) -> list[Writes]:
    """What may be asynchronous."""

    def bound(binding: Any, name: str, **more: Any) -> Writes:
        given: dict[str, Any] = {"framework": FRAMEWORK, "path": path + name, "with_group": within} | more
        return binding(**given)  # type: ignore[no-any-return]

    to_root, from_root = root_as("dst"), root_as("src")
    return [
        bound(AllGatherList, "all_gather", admits=ANY),
        bound(AllGatherInto, "all_gather_into_tensor", admits=GATHERED),
        bound(AllGatherUneven, "all_gather_into_tensor_uneven", admits=_UNEVEN),
        bound(AllReduceInPlace, "all_reduce", admits=_SUMS, with_op=named_op),
        bound(AllToAllList, "all_to_all", admits=EXCHANGED),
        bound(AllToAllSingle, "all_to_all_single", admits=EXCHANGED),
        bound(ReduceInPlace, "reduce", admits=_SUMS, with_op=named_op, with_root=to_root),
        bound(BroadcastInPlace, "broadcast", admits=ANY, with_root=from_root),
        bound(GatherList, "gather", admits=_PARTS, with_root=to_root, lists="everywhere"),
        bound(ScatterList, "scatter", admits=_PARTS, with_root=from_root, lists="everywhere"),
        bound(ReduceScatterList, "reduce_scatter", admits=_SUMMED_PARTS, with_op=named_op),
        bound(ReduceScatterInto, "reduce_scatter_tensor", admits=_SUMMED_ROWS, with_op=named_op),
        bound(
            ReduceScatterInto,
            "reduce_scatter_tensor_uneven",
            admits=_SUMMED_UNEVEN,
            with_op=named_op,
            sized=True,
        ),
    ]


def _only_in_ops(path: str) -> list[Writes]:
    common: dict[str, Any] = {"framework": FRAMEWORK, "with_group": within}
    flat = Admits(dtypes=MOVED, groups="ordered", layouts=CONTIGUOUS, ragged=True)
    return [
        GatherInto(**common, path=path + "gather_into_tensor", admits=GATHERED, with_root=root_as("dst")),
        ScatterInto(**common, path=path + "scatter_tensor", admits=GATHERED, with_root=root_as("src")),
        AllToAllCounts(**common, path=path + "all_to_all_v_c", admits=flat, alone=_ALL_KNOW),
    ]


def _objects(path: str) -> tuple[Binding, ...]:
    common: dict[str, Any] = {"framework": FRAMEWORK, "with_group": within, "admits": _OBJECTS}
    sends: dict[str, Any] = common | {"admits": replace(_OBJECTS, groups="sorted", least_size=2)}
    to_root, from_root = root_as("dst"), root_as("src")
    return (
        AllGatherObject(**common, path=path + "all_gather_object"),
        GatherObject(**common, path=path + "gather_object", with_root=to_root, lists_everywhere=True),
        BroadcastObjects(**common, path=path + "broadcast_object_list", with_root=from_root),
        ScatterObjects(**common, path=path + "scatter_object_list", with_root=from_root),
        RingObjects(
            **sends,
            path=path + "send_object_list",
            other=path + "recv_object_list",
            received=lambda source: 0,
        ),
    )


def _module(path: str, written: list[Writes]) -> tuple[Binding, ...]:
    barrier = Barrier(framework=FRAMEWORK, path=path + "barrier", admits=ANY, with_group=within)
    asynchronous = [replace(one, form="async", options={"async_op": True}) for one in written]
    return (
        *written,
        *asynchronous,
        *messages_in_place(path),
        *_objects(path),
        barrier,
        replace(barrier, form="async", options={"async_op": True}),
    )


_MINT, _OPS = "mindspore.mint.distributed.", "mindspore.ops.communication."
IN_PLACE: tuple[Binding, ...] = (
    *_module(_MINT, _both_ways(_MINT)),
    *_module(_OPS, [*_both_ways(_OPS), *_only_in_ops(_OPS)]),
)
