"""MindSpore: ``communication.comm_func``, the primitives of ``ops``, and ``mint.distributed``.

From mindspore 2.10.0 run on CPU where that backend has the operation, else from its documentation and source.
A function of ``comm_func`` leaves its input alone and returns ``(output, handle)``, the handle None unless
asked for; a primitive returns the output; ``mint`` writes into what it is given, as torch does. Groups are
names, and the order of ``create_group``'s list is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from collshim.conformance.bindings.admits import FLOATS, Admits
from collshim.conformance.bindings.answers import Handle, Tree
from collshim.conformance.bindings.binding import Binding, Framework, Refused
from collshim.conformance.bindings.outputs import (
    AllGatherInto,
    AllGatherList,
    AllReduceInPlace,
    AllToAllList,
    AllToAllSingle,
    split_sizes,
)
from collshim.conformance.bindings.places import Place
from collshim.conformance.bindings.results import (
    AllGatherJoined,
    AllReduced,
    AllToAllAxes,
    AllToAllJoined,
    AllToAllParts,
    Asked,
    Returns,
)

_MOVED = ("bool", "uint8", "int8", "int32", "int64", *FLOATS)
_SUMMED = ("int8", "int32", "int64", "float16", "float32")
_OPS = ("sum", "prod", "min", "max")
_CONTIGUOUS = ("contiguous",)


def _enter(place: Place) -> None:
    place.function("mindspore.communication.init")()


def _group(place: Place, case: Any) -> str | None:
    if case.group is None or place.rank not in case.group:
        return None
    name = "ranks " + " ".join(map(str, case.group))
    create = place.function("mindspore.communication.create_group")
    place.once(("mindspore", case.group), lambda: create(name, list(case.group)))
    return name


def _within(group: str | None) -> Mapping[str, Any]:
    return {} if group is None else {"group": group}


def _gather(asked: Asked, **options: Any) -> Tree:
    return asked.function(asked.given, **_within(asked.group), **options)


def _reduce(asked: Asked, **options: Any) -> Tree:
    return asked.function(asked.given, op=asked.case.reduce_op, **_within(asked.group), **options)


def _exchange(asked: Asked, **options: Any) -> Tree:
    shapes = [asked.case.part_shape(giver, asked.rank) for giver in range(len(asked.case.ranks))]
    return asked.function(shapes, asked.given, **_within(asked.group), **options)


def _exchange_single(asked: Asked, **options: Any) -> Tree:
    sizes = split_sizes(asked.case, asked.rank)
    length = sum(sizes[0]) if sizes else asked.given.shape[0]
    shape = (length, *tuple(asked.given.shape)[1:])
    return asked.function(shape, asked.given, *sizes, **_within(asked.group), **options)


def _primitive(asked: Asked) -> Tree:
    return asked.function(**_within(asked.group))(asked.given)


def _reducing_primitive(asked: Asked) -> Tree:
    return asked.function(op=asked.case.reduce_op, **_within(asked.group))(asked.given)


def _exchanging_primitive(asked: Asked) -> Tree:
    size = len(asked.case.ranks)
    return asked.function(size, asked.case.split_axis, asked.case.axis, **_within(asked.group))(asked.given)


def _named_op(place: Place, op: str) -> Mapping[str, Any]:
    return {"op": op}


FRAMEWORK = Framework("mindspore", _enter, _group)
_GATHERED = Admits(dtypes=_MOVED, groups="ordered", least_ndim=1)
_REDUCED = Admits(dtypes=_SUMMED, groups="ordered", reduce_ops=_OPS)
_EXCHANGED = Admits(dtypes=_MOVED, groups="ordered", layouts=_CONTIGUOUS, ragged=True, least_ndim=1)
_AVERAGE = Refused(changes={"reduce_op": "avg"}, error="TypeError", match="must be one of sum, prod, min, max")


def _functional(binding: type[Returns], name: str, speak: Callable[..., Tree], **more: Any) -> tuple[Binding, ...]:
    """A function of ``comm_func``, called synchronously and asynchronously."""
    path = "mindspore.communication.comm_func." + name
    value = more.pop("value", lambda value: value)
    common: dict[str, Any] = {"framework": FRAMEWORK, "path": path, "speak": speak} | more
    return (
        binding(**common, wrap=lambda result: (value(result), None)),
        binding(
            **common,
            form="async",
            options={"async_op": True},
            wrap=lambda result: (value(result), Handle()),
        ),
    )


def _primitives() -> tuple[Binding, ...]:
    axes = Admits(dtypes=_MOVED, groups="ordered", axes=True, split_axes=True, least_ndim=1)
    common: dict[str, Any] = {"framework": FRAMEWORK}
    return (
        AllGatherJoined(**common, path="mindspore.ops.AllGather", admits=_GATHERED, speak=_primitive),
        AllReduced(**common, path="mindspore.ops.AllReduce", admits=_REDUCED, speak=_reducing_primitive),
        AllToAllAxes(**common, path="mindspore.ops.AlltoAll", admits=axes, speak=_exchanging_primitive),
    )


def _mint() -> tuple[Binding, ...]:
    path = "mindspore.mint.distributed."
    common: dict[str, Any] = {"framework": FRAMEWORK, "with_group": _within}
    any_rank = Admits(dtypes=_MOVED, groups="ordered")
    averaged = Admits(dtypes=_SUMMED, groups="ordered", reduce_ops=(*_OPS, "avg"))
    return (
        AllGatherList(**common, path=path + "all_gather", admits=any_rank),
        AllGatherInto(**common, path=path + "all_gather_into_tensor", admits=_GATHERED),
        AllReduceInPlace(**common, path=path + "all_reduce", admits=averaged, with_op=_named_op),
        AllToAllList(**common, path=path + "all_to_all", admits=_EXCHANGED),
        AllToAllSingle(**common, path=path + "all_to_all_single", admits=_EXCHANGED),
    )


BINDINGS: tuple[Binding, ...] = (
    *_functional(AllGatherJoined, "all_gather_into_tensor", _gather, admits=_GATHERED),
    *_functional(AllReduced, "all_reduce", _reduce, admits=_REDUCED, refused=(_AVERAGE,)),
    *_functional(AllToAllParts, "all_to_all_with_output_shape", _exchange, admits=_EXCHANGED, value=tuple),
    *_functional(AllToAllJoined, "all_to_all_single_with_output_shape", _exchange_single, admits=_EXCHANGED),
    *_primitives(),
    *_mint(),
)
