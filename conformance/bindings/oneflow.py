"""OneFlow: ``oneflow.comm``, which knows the world only, sums only, and returns None.

From oneflow 0.9.0 run on CPU. ``all_gather`` and ``gather`` put new tensors into the list, ``gather`` on every rank
that gives one; ``reduce_scatter`` gives its output other memory; ``all_to_all`` and ``scatter`` keep the tensors
given, but give the one that comes from this rank itself the memory of its input; ``all_gather_into_tensor`` and
``reduce_scatter_tensor`` take any shapes whose numbers of elements fit. Lists hold no 0-d tensors, but for ``scatter``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from collshim.conformance.bindings import invalid
from collshim.conformance.bindings.admits import FLOATS, Admits
from collshim.conformance.bindings.answers import Tree
from collshim.conformance.bindings.barriers import Barrier
from collshim.conformance.bindings.binding import Binding, Framework, Refused, refuses, root_as
from collshim.conformance.bindings.joined_outputs import AllGatherInto, ReduceScatterInto
from collshim.conformance.bindings.messages import Neighbours, Ring
from collshim.conformance.bindings.output_lists import (
    AllGatherList,
    AllToAllList,
    GatherList,
    ReduceScatterList,
    ScatterList,
)
from collshim.conformance.bindings.outputs import NO_OPTIONS, AllReduceInPlace, BroadcastInPlace, ReduceInPlace
from collshim.conformance.bindings.rank_context import RankContext

_SUMMED = ("bool", "uint8", "int8", "int32", "int64", "float32", "float64")  # float16 ends the process
_GATHERED = ("bool", "uint8", "int8", "int32", "int64", *FLOATS)


def _enter(context: RankContext) -> None:
    """Importing oneflow joins the world."""
    context.function("oneflow")


def _group(context: RankContext, case: Any) -> None:
    """There are no groups."""


def _no_group(group: Any) -> Mapping[str, Any]:
    return NO_OPTIONS


def _discovering(asked: Neighbours) -> Tree:
    send, recv = asked.place.function("oneflow.comm.send"), asked.place.function("oneflow.comm.recv")
    return asked.in_turn(lambda: send(asked.given, asked.to), lambda: recv(asked.source))


def _filling(asked: Neighbours) -> Tree:
    send, recv = asked.place.function("oneflow.comm.send"), asked.place.function("oneflow.comm.recv")
    return asked.in_turn(lambda: send(asked.given, asked.to), lambda: recv(asked.source, out=asked.buffer))


def _received(received: Any, source: int) -> Tree:
    return {"send": None, "recv": received}


FRAMEWORK = Framework("oneflow", _enter, _group)
_GATHER = Admits(dtypes=_GATHERED)
_CONCATENATED = Admits(dtypes=_GATHERED, least_ndim=1)
_DIFFERENTIABLE = Admits(dtypes=_GATHERED, least_ndim=1, gradient=True)
_SUMS = Admits(dtypes=_SUMMED)
_PARTS = Admits(dtypes=_SUMMED, layouts=("contiguous",))
_SUMMED_PARTS = Admits(dtypes=_SUMMED, layouts=("contiguous",), least_ndim=1)
_MESSAGES = Admits(dtypes=_SUMMED, least_size=2)
_DISCOVERED = Admits(dtypes=_SUMMED, least_size=2, kinds=("torch",))
_INTO, _SCATTER = "all_gather_into_tensor", "reduce_scatter_tensor"
_NO_ARRAY = refuses(invalid.NO_ARRAY, "AssertionError")
_BAD_LISTS = (_NO_ARRAY, refuses(invalid.TUPLE, "AssertionError"), refuses(invalid.TOO_SHORT, "AssertionError"))
_NO_RANK = Refused(changes={"root": 9}, error="IndexError")
_GATHERS_TO_ALL = "every rank gets every tensor, whatever dst says: it meets all_gather"


def _bound(binding: Any, name: str, **more: Any) -> Binding:
    path = "oneflow.comm." + name
    return binding(framework=FRAMEWORK, path=path, with_group=_no_group, **more)  # type: ignore[no-any-return]


def _ring(name: str, form: str, admits: Admits, **more: Any) -> Binding:
    path = "oneflow.comm." + name
    return Ring(framework=FRAMEWORK, path=path, form=form, admits=admits, returns=_received, **more)


_GATHER_LIST: dict[str, Any] = {
    "admits": _CONCATENATED,
    "with_root": root_as("dst"),
    "fills": "everywhere",
    "replaces": True,
    "alone": _GATHERS_TO_ALL,
}

BINDINGS: tuple[Binding, ...] = (
    _bound(AllGatherList, "all_gather", admits=_DIFFERENTIABLE, replaces=True, refused=_BAD_LISTS),
    _bound(AllGatherInto, _INTO, admits=_CONCATENATED),
    _bound(AllGatherInto, _INTO, form="stacked", admits=_GATHER, output="stacked"),
    _bound(AllGatherInto, _INTO, form="flat", admits=_GATHER, output="flat"),
    _bound(AllReduceInPlace, "all_reduce", admits=_SUMS, refused=(_NO_ARRAY,)),
    _bound(
        AllToAllList,
        "all_to_all",
        admits=Admits(dtypes=_GATHERED, layouts=("contiguous",), least_ndim=1),
        aliases_own=True,
        refused=_BAD_LISTS[1:],
    ),
    _bound(ReduceInPlace, "reduce", admits=_SUMS, with_root=root_as("dst"), refused=(_NO_RANK, _NO_ARRAY)),
    _bound(BroadcastInPlace, "broadcast", admits=_SUMS, with_root=root_as("src"), refused=(_NO_RANK, _NO_ARRAY)),
    _bound(GatherList, "gather", **_GATHER_LIST),
    _bound(GatherList, "gather", form="everywhere", lists="everywhere", **_GATHER_LIST),
    _bound(ScatterList, "scatter", admits=_PARTS, with_root=root_as("src"), aliases_own=True),
    _bound(
        ScatterList,
        "scatter",
        form="everywhere",
        lists="everywhere",
        admits=_PARTS,
        with_root=root_as("src"),
        aliases_own=True,
    ),
    _bound(ReduceScatterList, "reduce_scatter", admits=_SUMMED_PARTS, rebinds=True, refused=_BAD_LISTS[1:]),
    _bound(ReduceScatterInto, _SCATTER, admits=Admits(dtypes=_SUMMED, least_ndim=1)),
    _bound(ReduceScatterInto, _SCATTER, form="stacked", admits=_SUMS, input="stacked"),
    _bound(ReduceScatterInto, _SCATTER, form="flat", admits=_SUMS, input="flat"),
    _bound(Barrier, "barrier", admits=_SUMS),
    _ring("recv", "", _DISCOVERED, speak=_discovering, fills=False),
    _ring("recv", "out", _MESSAGES, speak=_filling),
)
