"""The primitives of ``mindspore.ops``: classes whose instances are called. Roots are ranks in the group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from collshim.conformance.bindings.admits import Admits
from collshim.conformance.bindings.answers import Tree
from collshim.conformance.bindings.barriers import Barrier
from collshim.conformance.bindings.binding import Binding
from collshim.conformance.bindings.mindspore.common import ANY, FRAMEWORK, GATHERED, MOVED, OPS, REDUCED, SUMMED, within
from collshim.conformance.bindings.mindspore.functional import placeholder
from collshim.conformance.bindings.results import AllGatherJoined, AllReduced, AllToAllAxes, Asked
from collshim.conformance.bindings.rooted_results import (
    Broadcasted,
    GatheredJoined,
    Reduced,
    ReduceScattered,
    ScatteredJoined,
)


def _plain(asked: Asked) -> Tree:
    return asked.function(**within(asked.group))(asked.given)


def _reduce(asked: Asked) -> Tree:
    return asked.function(op=asked.case.reduce_op, **within(asked.group))(asked.given)


def _exchange(asked: Asked) -> Tree:
    size = len(asked.case.ranks)
    return asked.function(size, asked.case.split_axis, asked.case.axis, **within(asked.group))(asked.given)


def _rooted(asked: Asked) -> Tree:
    return asked.function(asked.case.root, **within(asked.group))(asked.given)


def _broadcast(asked: Asked) -> Tree:
    return asked.function(asked.case.root, **within(asked.group))((asked.given,))


def _reduce_to_root(asked: Asked) -> Tree:
    return asked.function(asked.case.root, op=asked.case.reduce_op, **within(asked.group))(asked.given)


def _in_tuple(value: Tree) -> Tree:
    return (value,)


def _bound(binding: Any, name: str, speak: Callable[..., Tree], **more: Any) -> Binding:
    return binding(framework=FRAMEWORK, path="mindspore.ops." + name, speak=speak, **more)  # type: ignore[no-any-return]


_ROWS = replace(GATHERED, gradient=True)
_SUMS = replace(REDUCED, gradient=True)
_AXES = Admits(dtypes=MOVED, groups="ordered", axes=True, split_axes=True, least_ndim=1)
_SUMMED_ROWS = Admits(dtypes=SUMMED, groups="ordered", reduce_ops=OPS, least_ndim=1)

PRIMITIVES: tuple[Binding, ...] = (
    _bound(AllGatherJoined, "AllGather", _plain, admits=_ROWS),
    _bound(AllReduced, "AllReduce", _reduce, admits=_SUMS),
    _bound(AllToAllAxes, "AlltoAll", _exchange, admits=_AXES),
    _bound(ReduceScattered, "ReduceScatter", _reduce, admits=_SUMMED_ROWS),
    _bound(Broadcasted, "Broadcast", _broadcast, admits=replace(ANY, gradient=True), wrap=_in_tuple, rule="own"),
    _bound(Reduced, "Reduce", _reduce_to_root, admits=REDUCED, others=placeholder),
    _bound(GatheredJoined, "CollectiveGather", _rooted, admits=GATHERED, others=placeholder),
    _bound(ScatteredJoined, "CollectiveScatter", _rooted, admits=GATHERED),
    Barrier(framework=FRAMEWORK, path="mindspore.ops.Barrier", admits=ANY, with_group=within, made=True),
)
