"""OneFlow: ``oneflow.comm``, which knows the world only, sums only, and returns None.

From oneflow 0.9.0 run on CPU. ``all_gather`` and ``gather`` put new tensors into the list, ``gather`` on every rank
that gives one; ``reduce_scatter`` gives its output other memory; ``all_to_all`` and ``scatter`` keep the tensors
given, but give the one that comes from this rank itself the memory of its input; ``all_gather_into_tensor`` and
``reduce_scatter_tensor`` take any shapes whose numbers of elements fit. Lists hold no 0-d tensors, but for ``scatter``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from collshim.conformance.bindings import invalid
from collshim.conformance.bindings.admits import FLOATS, Admits
from collshim.conformance.bindings.answers import Tree
from collshim.conformance.bindings.barriers import Barrier
from collshim.conformance.bindings.binding import Binding, Framework, Refused, refuses
from collshim.conformance.bindings.messages import Neighbours, Ring
from collshim.conformance.bindings.rank_context import RankContext
from collshim.conformance.bindings.spelling import Spelling

_SUMMED = ("bool", "uint8", "int8", "int32", "int64", "float32", "float64")  # float16 ends the process
_GATHERED = ("bool", "uint8", "int8", "int32", "int64", *FLOATS)
_COMM = "oneflow.comm."


def _enter(context: RankContext) -> None:
    """Importing oneflow joins the world."""
    context.function("oneflow")


def _group(context: RankContext, case: Any) -> None:
    """There are no groups."""


FRAMEWORK = Framework("oneflow", _enter, _group)
_GATHER = Admits(dtypes=_GATHERED)
_CONCATENATED = replace(_GATHER, least_ndim=1)
_SUMS = Admits(dtypes=_SUMMED)
_PARTS = replace(_SUMS, layouts=("contiguous",))
_NO_ARRAY = refuses(invalid.NO_ARRAY, "AssertionError")
_BAD_LISTS = (refuses(invalid.TUPLE, "AssertionError"), refuses(invalid.TOO_SHORT, "AssertionError"))
_NO_RANK = Refused(changes={"root": 9}, error="IndexError")


def _spelled(name: str, takes: Mapping[str, str], collective: str = "", **more: Any) -> Spelling:
    return Spelling(framework=FRAMEWORK, path=_COMM + name, takes=takes, collective=collective or name, **more)


_ALL_GATHER = _spelled(
    "all_gather",
    {"tensor_list": "filled list", "tensor": "array"},
    result="tensor_list",
    memory="replaced",
    admits=replace(_CONCATENATED, gradient=True),
    refused=(_NO_ARRAY, *_BAD_LISTS),
)
_ALL_GATHER_INTO = _spelled(
    "all_gather_into_tensor",
    {"output_tensor": "out", "input_tensor": "array"},
    "all_gather",
    result="output_tensor",
    arrangement="joined",
    admits=_CONCATENATED,
)
_GATHER_LIST = _spelled(
    "gather",
    {"tensor": "array", "gather_list": "optional filled list", "dst": "ignored root"},
    result="gather_list",
    memory="replaced",
    only_root=("gather_list",),
    holders="all",
    admits=_CONCATENATED,
    alone="every rank gets every tensor, whatever dst says: it meets all_gather",
)
_SCATTER = _spelled(
    "scatter",
    {"tensor": "written but None", "scatter_list": "exact list of parts@root", "src": "root"},
    result="tensor",
    only_root=("scatter_list",),
    shares_own=True,
    admits=_PARTS,
)
_REDUCE_SCATTER_INTO = _spelled(
    "reduce_scatter_tensor",
    {"output_tensor": "out", "input_tensor": "array of whole"},
    "reduce_scatter",
    result="output_tensor",
    arrangement="joined",
    admits=replace(_SUMS, least_ndim=1),
)
_OF_WHOLE_TENSORS = tuple(
    replace(one, form=form, arrangement=form, admits=replace(one.admits, least_ndim=0))
    for one in (_ALL_GATHER_INTO, _REDUCE_SCATTER_INTO)
    for form in ("stacked", "flat")
)
_COLLECTIVES = (
    _ALL_GATHER,
    _ALL_GATHER_INTO,
    _spelled("all_reduce", {"tensor": "inout"}, result="tensor", admits=_SUMS, refused=(_NO_ARRAY,)),
    _spelled(
        "all_to_all",
        {"output_tensor_list": "exact list of places", "input_tensor_list": "exact list of parts"},
        result="output_tensor_list",
        shares_own=True,
        admits=replace(_CONCATENATED, layouts=("contiguous",)),
        refused=_BAD_LISTS,
    ),
    _spelled(
        "reduce",
        {"tensor": "inout", "dst": "root"},
        result="tensor",
        admits=_SUMS,
        refused=(_NO_RANK, _NO_ARRAY),
    ),
    _spelled(
        "broadcast",
        {"tensor": "inout", "src": "root"},
        result="tensor",
        admits=_SUMS,
        refused=(_NO_RANK, _NO_ARRAY),
    ),
    _GATHER_LIST,
    replace(_GATHER_LIST, form="everywhere", only_root=()),
    _SCATTER,
    replace(_SCATTER, form="everywhere", only_root=()),
    _spelled(
        "reduce_scatter",
        {"output": "rebound", "input_list": "exact list of equal parts"},
        result="output",
        memory="replaced",
        admits=replace(_PARTS, least_ndim=1),
        refused=_BAD_LISTS,
    ),
    _REDUCE_SCATTER_INTO,
    *_OF_WHOLE_TENSORS,
)


def _discovering(asked: Neighbours) -> Tree:
    send, recv = asked.place.function(_COMM + "send"), asked.place.function(_COMM + "recv")
    return asked.in_turn(lambda: send(asked.given, asked.to), lambda: recv(asked.source))


def _filling(asked: Neighbours) -> Tree:
    send, recv = asked.place.function(_COMM + "send"), asked.place.function(_COMM + "recv")
    return asked.in_turn(lambda: send(asked.given, asked.to), lambda: recv(asked.source, out=asked.buffer))


def _received(received: Any, source: int) -> Tree:
    return {"send": None, "recv": received}


def _no_group(group: Any) -> Mapping[str, Any]:
    return {}


_RING = Ring(
    framework=FRAMEWORK,
    path=_COMM + "recv",
    form="out",
    admits=replace(_SUMS, least_size=2),
    speak=_filling,
    returns=_received,
)
SPELLINGS: tuple[Binding, ...] = (
    *_COLLECTIVES,
    Barrier(framework=FRAMEWORK, path=_COMM + "barrier", with_group=_no_group, admits=_SUMS),
    replace(_RING, form="", admits=replace(_RING.admits, kinds=("torch",)), speak=_discovering, fills=False),
    _RING,
)
