"""OneFlow: ``oneflow.comm``, which knows the world only, sums only, and returns None.

From oneflow 0.9.0 run on CPU. ``all_gather`` puts new tensors into the list; ``all_to_all`` keeps the tensors
given, but gives the one that comes from this rank itself the memory of its input; ``all_gather_into_tensor``
takes an output of any shape that has enough elements.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from collshim.conformance.bindings.admits import FLOATS, Admits
from collshim.conformance.bindings.binding import Binding, Framework
from collshim.conformance.bindings.outputs import (
    NO_OPTIONS,
    AllGatherInto,
    AllGatherList,
    AllReduceInPlace,
    AllToAllList,
)
from collshim.conformance.bindings.places import Place

_SUMMED = ("bool", "uint8", "int8", "int32", "int64", "float32", "float64")  # float16 ends the process
_MOVED = ("bool", "uint8", "int8", "int32", "int64", *FLOATS)


def _enter(place: Place) -> None:
    """Importing oneflow joins the world."""
    place.function("oneflow")


def _group(place: Place, case: Any) -> None:
    """There are no groups."""


def _no_group(group: Any) -> Mapping[str, Any]:
    return NO_OPTIONS


FRAMEWORK = Framework("oneflow", _enter, _group)
_GATHER = Admits(dtypes=_MOVED)
_CONCATENATED = Admits(dtypes=_MOVED, least_ndim=1)
_INTO = "oneflow.comm.all_gather_into_tensor"

BINDINGS: tuple[Binding, ...] = (
    AllGatherList(
        framework=FRAMEWORK,
        path="oneflow.comm.all_gather",
        admits=_GATHER,
        with_group=_no_group,
        replaces=True,
    ),
    AllGatherInto(framework=FRAMEWORK, path=_INTO, admits=_CONCATENATED, with_group=_no_group),
    AllGatherInto(
        framework=FRAMEWORK,
        path=_INTO,
        form="stacked",
        admits=_GATHER,
        with_group=_no_group,
        output="stacked",
    ),
    AllGatherInto(
        framework=FRAMEWORK,
        path=_INTO,
        form="flat",
        admits=_GATHER,
        with_group=_no_group,
        output="flat",
    ),
    AllReduceInPlace(
        framework=FRAMEWORK,
        path="oneflow.comm.all_reduce",
        admits=Admits(dtypes=_SUMMED),
        with_group=_no_group,
    ),
    AllToAllList(
        framework=FRAMEWORK,
        path="oneflow.comm.all_to_all",
        admits=Admits(dtypes=_MOVED, layouts=("contiguous",), least_ndim=1),
        with_group=_no_group,
        aliases_own=True,
    ),
)
