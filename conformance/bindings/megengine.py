"""MegEngine: ``megengine.functional.distributed``, which returns new tensors and knows axes.

From megengine 1.13.0. A group is a ``Group``, in the order of its list. Axes are not negative; an array has
elements; a 0-d array is gathered as (size,) and cannot be cut; there is no world of one rank.
"""

from __future__ import annotations

from typing import Any

from collshim.conformance.bindings.admits import Admits
from collshim.conformance.bindings.answers import Tree
from collshim.conformance.bindings.binding import Binding, Framework, Refused
from collshim.conformance.bindings.places import Place
from collshim.conformance.bindings.results import AllGatherJoined, AllReduced, AllToAllAxes, Asked

_DTYPES = ("int8", "uint8", "int32", "float16", "float32")
_PATH = "megengine.functional.distributed."


def _enter(place: Place) -> None:
    if not place.function("megengine.distributed.is_distributed")():
        init = place.function("megengine.distributed.init_process_group")
        init(place.address, place.port, place.size, place.rank, place.rank)


def _group(place: Place, case: Any) -> Any:
    if case.group is None or place.rank not in case.group:
        return None
    new_group = place.function("megengine.distributed.new_group")
    return place.once(("megengine", case.group), lambda: new_group(list(case.group)))


def _within(asked: Asked) -> dict[str, Any]:
    return {} if asked.group is None else {"group": asked.group}


def _gather(asked: Asked) -> Tree:
    return asked.function(asked.given, axis=asked.case.axis, **_within(asked))


def _reduce(asked: Asked) -> Tree:
    return asked.function(asked.given, **_within(asked))


def _exchange(asked: Asked) -> Tree:
    axes = {"split_axis": asked.case.split_axis, "concat_axis": asked.case.axis}
    return asked.function(asked.given, **axes, **_within(asked))


FRAMEWORK = Framework("megengine", _enter, _group)
_OUTSIDE = Refused(changes={"axis": 2}, error="IndexError")
_INDIVISIBLE = Refused(
    changes={"size": 2, "lengths": ((1, 2), (1, 2))},
    error="AssertionError",
    match="can't devided by group size",
)


def _reduction(op: str) -> Binding:
    admits = Admits(dtypes=_DTYPES, reduce_ops=(op,), groups="ordered", empty=False, least_size=2)
    path = f"{_PATH}all_reduce_{op}"
    return AllReduced(framework=FRAMEWORK, path=path, admits=admits, speak=_reduce)


BINDINGS: tuple[Binding, ...] = (
    AllGatherJoined(
        framework=FRAMEWORK,
        path=_PATH + "all_gather",
        admits=Admits(dtypes=_DTYPES, groups="ordered", axes=True, empty=False, least_size=2),
        speak=_gather,
        refused=(_OUTSIDE,),
    ),
    *map(_reduction, ("sum", "max", "min")),
    AllToAllAxes(
        framework=FRAMEWORK,
        path=_PATH + "all_to_all",
        admits=Admits(
            dtypes=_DTYPES, groups="ordered", axes=True, split_axes=True, empty=False, least_size=2, least_ndim=1
        ),
        speak=_exchange,
        refused=(_INDIVISIBLE,),
    ),
)
