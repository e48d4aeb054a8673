"""``mindspore.mint.distributed`` and ``mindspore.ops.communication``: torch's spelling, with groups by name.

A call returns None or a handle. Every rank passes lists; on ranks other than the root they stay unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from collshim.conformance.bindings.barriers import Barrier
from collshim.conformance.bindings.binding import Binding
from collshim.conformance.bindings.messages import Half, RingObjects
from collshim.conformance.bindings.objects import OfObjects
from collshim.conformance.bindings.spelling import Spelling
from collshim.conformance.spellings.mindspore.common import (
    ANY,
    CONTIGUOUS,
    EXCHANGED,
    FRAMEWORK,
    OPS,
    PARTS,
    REDUCED,
    ROWS,
    asynchronous,
    counting,
    spelled,
)
from collshim.conformance.spellings.mindspore.messages import messages_in_place

_SUMS = replace(REDUCED, reduce_ops=(*OPS, "avg"))
_SUMMED_ROWS = replace(_SUMS, least_ndim=1)
_NO_PRODUCT = ("sum", "min", "max", "avg")
_SUMMED_UNEVEN = replace(_SUMMED_ROWS, layouts=CONTIGUOUS, reduce_ops=_NO_PRODUCT, ragged=True)
_OBJECTS = replace(ANY, dtypes=("float32",))
_GATHERED = {"obj": "object", "object_gather_list": "list to fill@root", "dst": "root"}
_SCATTERED = {
    "scatter_object_output_list": "list to fill with one",
    "scatter_object_input_list": "objects@root",
    "src": "root",
}
_INTO = {"output_tensor": "out", "input_tensor": "array"}
_WHOLE = {"output": "out", "input": "array of whole"}


def _spelled(path: str, collective: str, takes: Mapping[str, str], **more: Any) -> Spelling:
    """Return a spelling whose group may be None."""
    return spelled(path, collective, {**takes, "group": "optional group"}, **more)


def _gathers(module: str) -> tuple[Spelling, ...]:
    def bound(name: str, collective: str, takes: Mapping[str, str], **more: Any) -> Spelling:
        return _spelled(f"{module}.{name}", collective, takes, result=next(iter(takes)), **more)

    splits = {"output_split_sizes": "optional rows from each", "input_split_sizes": "optional rows to each"}
    uneven = {"output": "out", "input": "array", "output_split_sizes": "rows from each"}
    lists = {"output_tensor_list": "longer list of outs", "input_tensor_list": "list of parts"}
    return (
        bound("all_gather", "all_gather", {"tensor_list": "list of outs", "tensor": "array"}, admits=ANY),
        bound("all_gather_into_tensor", "all_gather", _INTO, arrangement="joined", admits=ROWS),
        bound(
            "all_gather_into_tensor_uneven",
            "all_gather",
            uneven,
            arrangement="joined",
            admits=replace(ROWS, ragged=True),
        ),
        bound("all_to_all", "all_to_all", lists, admits=EXCHANGED),
        bound("all_to_all_single", "all_to_all", _WHOLE | splits, arrangement="joined", admits=EXCHANGED),
    )


def _reductions(module: str) -> tuple[Spelling, ...]:
    def bound(name: str, collective: str, takes: Mapping[str, str], **more: Any) -> Spelling:
        parameters = {**takes, "op": "mint's op"}
        return _spelled(f"{module}.{name}", collective, parameters, result=next(iter(takes)), **more)

    name, sizes = "reduce_scatter_tensor", {"input_split_sizes": "rows to each"}
    lists = {"output": "out", "input_list": "list of parts"}
    return (
        bound("all_reduce", "all_reduce", {"tensor": "inout"}, admits=_SUMS),
        bound("reduce", "reduce", {"tensor": "inout@root", "dst": "root"}, admits=_SUMS),
        bound("reduce_scatter", "reduce_scatter", lists, admits=replace(_SUMS, layouts=CONTIGUOUS)),
        bound(name, "reduce_scatter", _WHOLE, arrangement="joined", admits=_SUMMED_ROWS),
        bound(f"{name}_uneven", "reduce_scatter", _WHOLE | sizes, arrangement="joined", admits=_SUMMED_UNEVEN),
    )


def _rooted(module: str) -> tuple[Spelling, ...]:
    gather = {"tensor": "array", "gather_list": "list of outs@root", "dst": "root"}
    scatter = {"tensor": "out@root", "scatter_list": "list of parts@root", "src": "root"}
    broadcast = {"tensor": "inout", "src": "root"}
    return (
        _spelled(f"{module}.broadcast", "broadcast", broadcast, result="tensor", admits=ANY),
        _spelled(f"{module}.gather", "gather", gather, result="gather_list", admits=PARTS),
        _spelled(f"{module}.scatter", "scatter", scatter, result="tensor", admits=PARTS),
    )


def _only_in_ops(module: str) -> tuple[Spelling, ...]:
    whole = {"output_tensor": "out@root", "input_tensor": "array of whole@root", "src": "root"}
    return (
        _spelled(
            f"{module}.gather_into_tensor",
            "gather",
            {**_INTO, "output_tensor": "out@root", "dst": "root"},
            result="output_tensor",
            arrangement="joined",
            admits=ROWS,
        ),
        _spelled(
            f"{module}.scatter_tensor",
            "scatter",
            whole,
            result="output_tensor",
            arrangement="joined",
            admits=ROWS,
        ),
        counting(module),
    )


def _objects(path: str) -> tuple[Binding, ...]:
    def of(name: str, collective: str, takes: Mapping[str, str], **more: Any) -> OfObjects:
        common: dict[str, Any] = {"framework": FRAMEWORK, "admits": _OBJECTS, "result": next(iter(takes)), **more}
        return OfObjects(path=path + name, collective=collective, takes={**takes, "group": "group"}, **common)

    return (
        of(
            "all_gather_object",
            "all_gather_object",
            {"object_list": "list to fill", "obj": "object"},
            example="""\
from collshim.mindspore.mint import distributed

outs = [None] * size
distributed.all_gather_object(outs, {"rank": rank})
""",
            notes=("These functions are in `mint.distributed`; its `recv_object_list` returns 0.",),
        ),
        of("gather_object", "gather_object", _GATHERED, result="object_gather_list"),
        of("broadcast_object_list", "broadcast_object", {"object_list": "list to fill with two", "src": "root"}),
        of("scatter_object_list", "scatter_object", _SCATTERED),
        RingObjects(
            framework=FRAMEWORK,
            path=path + "send_object_list",
            sends=Half("send_object_list", {"object_list": "objects", "dst": "rank", "group": "group"}),
            receives=Half("recv_object_list", {"object_list": "list", "src": "rank", "group": "group"}),
            admits=replace(_OBJECTS, groups="sorted", least_size=2),
            returns=lambda received, source: {"send": None, "recv": 0},
        ),
    )


def _module(module: str, *more: Spelling) -> tuple[Binding, ...]:
    written = (*_gathers(module), *_reductions(module), *_rooted(module), *more)
    path = f"mindspore.{module}."
    barrier = Barrier(framework=FRAMEWORK, path=path + "barrier", admits=ANY)
    return (
        *written,
        *map(asynchronous, written),
        *messages_in_place(path),
        *_objects(path),
        barrier,
        replace(barrier, form="async", options={"async_op": True}),
    )


_OPS = "ops.communication"
IN_PLACE: tuple[Binding, ...] = (*_module("mint.distributed"), *_module(_OPS, *_only_in_ops(_OPS)))
