"""What is common to MindSpore's bindings: how a rank gets ready, how groups are said, what is admitted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from collshim.conformance.bindings import invalid
from collshim.conformance.bindings.admits import FLOATS, Admits
from collshim.conformance.bindings.binding import Framework, Refused, refuses
from collshim.conformance.bindings.rank_context import RankContext

MOVED = ("bool", "uint8", "int8", "int32", "int64", *FLOATS)
SUMMED = ("int8", "int32", "int64", "float16", "float32")
OPS = ("sum", "prod", "min", "max")
CONTIGUOUS = ("contiguous",)


def _enter(context: RankContext) -> None:
    context.function("mindspore.communication.init")()
    if not context.prefix:
        # What has no argument for a group, or a default from import time, asks for this one, which is the world's
        # name on other backends than the CPU's.
        create = context.function("mindspore.communication.create_group")
        create("hccl_world_group", list(range(context.size)))


def _group(context: RankContext, case: Any) -> str | None:
    if case.group is None or context.rank not in case.group:
        return None
    name = "ranks " + " ".join(map(str, case.group))
    create = context.function("mindspore.communication.create_group")
    context.once(("mindspore", case.group), lambda: create(name, list(case.group)))
    return name


def within(group: str | None) -> Mapping[str, Any]:
    """The keyword argument that says the group."""
    return {} if group is None else {"group": group}


def named_op(context: RankContext, op: str) -> Mapping[str, Any]:
    """The keyword argument that says a reduction."""
    return {"op": op}


_NEEDED = ("mindspore.communication.init", "mindspore.communication.create_group")
FRAMEWORK = Framework("mindspore", _enter, _group, needs=_NEEDED)
ANY = Admits(dtypes=MOVED, groups="ordered")
GATHERED = Admits(dtypes=MOVED, groups="ordered", least_ndim=1)
EXCHANGED = Admits(dtypes=MOVED, groups="ordered", layouts=CONTIGUOUS, ragged=True, least_ndim=1)
REDUCED = Admits(dtypes=SUMMED, groups="ordered", reduce_ops=OPS)
# A group's ranks are numbered in sorted order where messages are sent, whatever the order of its list.
MESSAGES = Admits(dtypes=MOVED, groups="sorted", least_size=2)
NOT_AVERAGED = Refused(changes={"reduce_op": "avg"}, error="TypeError", match="must be one of sum, prod, min, max")
NO_ARRAY = refuses(invalid.NO_ARRAY, "TypeError", "must be tensor")
NO_SUCH_RANK = Refused(changes={"root": 9}, error="RuntimeError", match="doesn't contain the global rank 9")
