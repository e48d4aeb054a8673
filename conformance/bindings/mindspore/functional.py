"""``mindspore.communication.comm_func``: collectives that return their result and leave their input alone.

``(output, handle)`` comes back where a call may be asynchronous, the handle None unless asked for, and the output alone
elsewhere. Off the root that is an array of one element without meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from collshim.conformance.bindings.admits import Admits
from collshim.conformance.bindings.answers import Handle, Shaped, Tree
from collshim.conformance.bindings.barriers import Barrier
from collshim.conformance.bindings.binding import Binding
from collshim.conformance.bindings.exchanges import AllToAllCounts, split_sizes
from collshim.conformance.bindings.mindspore.common import (
    ANY,
    CONTIGUOUS,
    EXCHANGED,
    FRAMEWORK,
    MOVED,
    NO_ARRAY,
    NO_SUCH_RANK,
    NOT_AVERAGED,
    OPS,
    SUMMED,
    within,
)
from collshim.conformance.bindings.outputs import Writes
from collshim.conformance.bindings.results import (
    AllGatherJoined,
    AllReduced,
    AllToAllJoined,
    AllToAllParts,
    Asked,
    Returns,
)
from collshim.conformance.bindings.rooted_results import (
    Broadcasted,
    GatheredJoined,
    Reduced,
    ReduceScattered,
    ScatteredJoined,
)

PATH = "mindspore.communication.comm_func."


def _plain(asked: Asked, **options: Any) -> Tree:
    return asked.function(asked.given, **within(asked.group), **options)


def _reduce(asked: Asked, **options: Any) -> Tree:
    return asked.function(asked.given, op=asked.case.reduce_op, **within(asked.group), **options)


def _exchange(asked: Asked, **options: Any) -> Tree:
    shapes = [asked.case.part_shape(giver, asked.rank) for giver in range(len(asked.case.ranks))]
    return asked.function(shapes, asked.given, **within(asked.group), **options)


def _exchange_single(asked: Asked, **options: Any) -> Tree:
    sizes = split_sizes(asked.case, asked.rank)
    length = sum(sizes[0]) if sizes else asked.given.shape[0]
    shape = (length, *tuple(asked.given.shape)[1:])
    return asked.function(shape, asked.given, *sizes, **within(asked.group), **options)


def _to_root(asked: Asked) -> Tree:
    return asked.function(asked.given, asked.case.root_rank, **within(asked.group))


def _reduce_to_root(asked: Asked) -> Tree:
    return asked.function(asked.given, asked.case.root_rank, op=asked.case.reduce_op, **within(asked.group))


def placeholder(case: Any) -> Tree:
    """What the ranks get that the result does not go to."""
    return Shaped((1,), case.dtype)


def _both_ways(binding: type[Returns], name: str, speak: Callable[..., Tree], **more: Any) -> tuple[Binding, ...]:
    """A function that may be asynchronous, called in both ways."""
    value = more.pop("value", lambda value: value)
    common: dict[str, Any] = {"framework": FRAMEWORK, "path": PATH + name, "speak": speak} | more
    return (
        binding(**common, wrap=lambda result: (value(result), None)),
        binding(
            **common,
            form="async",
            options={"async_op": True},
            wrap=lambda result: (value(result), Handle()),
        ),
    )


def _bound(binding: Any, name: str, speak: Callable[..., Tree], **more: Any) -> Binding:
    return binding(framework=FRAMEWORK, path=PATH + name, speak=speak, **more)  # type: ignore[no-any-return]


_ROWS = Admits(dtypes=MOVED, groups="ordered", least_ndim=1, gradient=True)
_ROOTED = Admits(dtypes=MOVED, groups="ordered", gradient=True)
_SUMS = Admits(dtypes=SUMMED, groups="ordered", reduce_ops=OPS, gradient=True)
_SUMMED_ROWS = Admits(dtypes=SUMMED, groups="ordered", reduce_ops=OPS, least_ndim=1, gradient=True)
_PARTS = replace(EXCHANGED, gradient=True)
_FLAT = Admits(dtypes=MOVED, groups="ordered", layouts=CONTIGUOUS, ragged=True)
_ALL_KNOW = "it counts elements: a peer that counts rows meets it only where parts are flat"
_COUNTS: Writes = AllToAllCounts(
    framework=FRAMEWORK, path=PATH + "all_to_all_v_c", admits=_FLAT, with_group=within, alone=_ALL_KNOW
)

FUNCTIONAL: tuple[Binding, ...] = (
    *_both_ways(AllGatherJoined, "all_gather_into_tensor", _plain, admits=_ROWS, refused=(NO_ARRAY,)),
    *_both_ways(AllReduced, "all_reduce", _reduce, admits=_SUMS, refused=(NOT_AVERAGED, NO_ARRAY)),
    *_both_ways(ReduceScattered, "reduce_scatter_tensor", _reduce, admits=_SUMMED_ROWS, refused=(NO_ARRAY,)),
    *_both_ways(AllToAllParts, "all_to_all_with_output_shape", _exchange, admits=_PARTS, value=tuple),
    *_both_ways(AllToAllJoined, "all_to_all_single_with_output_shape", _exchange_single, admits=_PARTS),
    _COUNTS,
    replace(_COUNTS, form="async", options={"async_op": True}),
    _bound(Broadcasted, "broadcast", _to_root, admits=_ROOTED, rule="own", refused=(NO_SUCH_RANK,)),
    _bound(Reduced, "reduce", _reduce_to_root, admits=_SUMS, others=placeholder, refused=(NO_SUCH_RANK,)),
    _bound(GatheredJoined, "gather_into_tensor", _to_root, admits=_ROWS, others=placeholder),
    _bound(ScatteredJoined, "scatter_tensor", _to_root, admits=_ROWS),
    Barrier(framework=FRAMEWORK, path=PATH + "barrier", admits=ANY, with_group=within),
)
