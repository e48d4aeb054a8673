"""PyTorch: ``torch.distributed``, and its differentiable twin ``torch.distributed.nn.functional``.

From torch 2.13.0 run with gloo, and where gloo refuses what torch documents (unequal parts in ``all_to_all``,
the stacked form of ``all_gather_into_tensor``) from the documentation. A call returns None, or a work whose
``wait()`` returns True; what is given as output is written, never replaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from collshim.conformance.bindings.admits import COMPLEX, FLOATS, Admits
from collshim.conformance.bindings.answers import Tree
from collshim.conformance.bindings.binding import Binding, Framework, Refused, blank
from collshim.conformance.bindings.outputs import (
    AllGatherInto,
    AllGatherList,
    AllReduceInPlace,
    AllToAllList,
    AllToAllSingle,
    Writes,
)
from collshim.conformance.bindings.places import Place
from collshim.conformance.bindings.results import (
    AllGatherParts,
    AllReduced,
    AllToAllJoined,
    AllToAllParts,
    Asked,
)

_DTYPES = ("bool", "uint8", "int8", "int32", "int64", *FLOATS, *COMPLEX)
_CONTIGUOUS = ("contiguous",)
_OPS = {"sum": "SUM", "prod": "PRODUCT", "min": "MIN", "max": "MAX", "avg": "AVG"}


def _enter(place: Place) -> None:
    if not place.function("torch.distributed.is_initialized")():
        init = place.function("torch.distributed.init_process_group")
        method = f"tcp://{place.address}:{place.port}"
        init("gloo", init_method=method, rank=place.rank, world_size=place.size)


def _group(place: Place, case: Any) -> Any:
    if case.group is None:
        return None
    new_group = place.function("torch.distributed.new_group")
    return place.once(("torch", case.group), lambda: new_group(list(case.group), sort_ranks=False))


def _op(place: Place, op: str) -> Mapping[str, Any]:
    return {"op": getattr(place.function("torch.distributed.ReduceOp"), _OPS[op])}


FRAMEWORK = Framework("torch", _enter, _group)
_GATHER = Admits(dtypes=_DTYPES, groups="ordered")
_REDUCE = Admits(dtypes=_DTYPES, groups="ordered", reduce_ops=tuple(_OPS))
_EXCHANGE = Admits(dtypes=_DTYPES, groups="ordered", layouts=_CONTIGUOUS, ragged=True, least_ndim=1)
_CONCATENATED = Admits(dtypes=_DTYPES, groups="ordered", least_ndim=1)
_UNORDERED = Refused(changes={"dtype": "complex64", "reduce_op": "prod"}, error="ValueError", match="complex")


def _written() -> tuple[Writes, ...]:
    path, into = "torch.distributed.", "torch.distributed.all_gather_into_tensor"
    single = path + "all_gather_single"
    return (
        AllGatherList(framework=FRAMEWORK, path=path + "all_gather", admits=_GATHER, loose=True),
        AllGatherInto(framework=FRAMEWORK, path=single, admits=_CONCATENATED),
        AllGatherInto(framework=FRAMEWORK, path=single, form="stacked", admits=_GATHER, output="stacked"),
        AllGatherInto(framework=FRAMEWORK, path=into, admits=_CONCATENATED),
        AllGatherInto(framework=FRAMEWORK, path=into, form="stacked", admits=_GATHER, output="stacked"),
        AllReduceInPlace(
            framework=FRAMEWORK, path=path + "all_reduce", admits=_REDUCE, with_op=_op, refused=(_UNORDERED,)
        ),
        AllToAllList(framework=FRAMEWORK, path=path + "all_to_all", admits=_EXCHANGE),
        AllToAllSingle(framework=FRAMEWORK, path=path + "all_to_all_single", admits=_EXCHANGE),
    )


def _asynchronous(binding: Writes) -> Binding:
    form = f"{binding.form}, async" if binding.form else "async"
    return replace(binding, form=form, options={"async_op": True}, done=True)


def _gather(asked: Asked) -> Tree:
    return asked.function(asked.given, **_within(asked))


def _reduce(asked: Asked) -> Tree:
    return asked.function(asked.given, **_op(asked.place, asked.case.reduce_op), **_within(asked))


def _exchange(asked: Asked) -> Tree:
    shapes = [asked.case.part_shape(giver, asked.rank) for giver in range(len(asked.case.ranks))]
    return asked.function([blank(asked.case, shape) for shape in shapes], asked.given, **_within(asked))


def _exchange_single(asked: Asked) -> Tree:
    output = blank(asked.case, asked.given.shape)
    return asked.function(output, asked.given, **_within(asked))


def _within(asked: Asked) -> dict[str, Any]:
    # Left out where it is the world: the default was evaluated at import, and None is no group.
    return {} if asked.group is None else {"group": asked.group}


def _differentiable() -> tuple[Binding, ...]:
    path = "torch.distributed.nn.functional."
    whole = Admits(dtypes=FLOATS, groups="ordered", layouts=_CONTIGUOUS, least_ndim=1)
    sums = Admits(dtypes=FLOATS, groups="ordered", reduce_ops=("sum", "prod", "min", "max"))
    floats = Admits(dtypes=FLOATS, groups="ordered", layouts=_CONTIGUOUS)
    return (
        AllGatherParts(framework=FRAMEWORK, path=path + "all_gather", admits=floats, speak=_gather, wrap=tuple),
        AllReduced(framework=FRAMEWORK, path=path + "all_reduce", admits=sums, speak=_reduce),
        AllToAllParts(framework=FRAMEWORK, path=path + "all_to_all", admits=_EXCHANGE, speak=_exchange, wrap=tuple),
        AllToAllJoined(framework=FRAMEWORK, path=path + "all_to_all_single", admits=whole, speak=_exchange_single),
    )


BINDINGS: tuple[Binding, ...] = (*_written(), *map(_asynchronous, _written()), *_differentiable())
