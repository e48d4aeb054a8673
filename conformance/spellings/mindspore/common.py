"""The common parts of MindSpore's spellings: how a rank is initialized, how groups are passed, what is admitted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from collshim.conformance.bindings import invalid
from collshim.conformance.bindings.admits import FLOATS, Admits
from collshim.conformance.bindings.answers import Handle, Shaped, Tree
from collshim.conformance.bindings.binding import Framework, Refused, refuses
from collshim.conformance.bindings.rank_context import RankContext
from collshim.conformance.bindings.spelling import Spelling


def _enter(context: RankContext) -> None:
    context.function("mindspore.communication.init")()
    if not context.prefix:
        # Functions without an argument for a group, or with a default from import time, use this group, which is the
        # world's name on backends other than CPU.
        create = context.function("mindspore.communication.create_group")
        create("hccl_world_group", list(range(context.size)))


def _group(context: RankContext, case: Any) -> str | None:
    if case.group is None or context.rank not in case.group:
        return None
    name = "ranks " + " ".join(map(str, case.group))
    create = context.function("mindspore.communication.create_group")
    context.once(("mindspore", case.group), lambda: create(name, list(case.group)))
    return name


_NEEDED = ("mindspore.communication.init", "mindspore.communication.create_group")
FRAMEWORK = Framework("mindspore", _enter, _group, needs=_NEEDED)
CONTIGUOUS = ("contiguous",)
OPS = ("sum", "prod", "min", "max")
ANY = Admits(dtypes=("bool", "uint8", "int8", "int32", "int64", *FLOATS, "bfloat16"), groups="ordered")
ROWS = replace(ANY, least_ndim=1)
PARTS = replace(ANY, layouts=CONTIGUOUS)
FLAT = replace(PARTS, ragged=True)
EXCHANGED = replace(FLAT, least_ndim=1)
REDUCED = replace(ANY, dtypes=("int8", "int32", "int64", "float16", "float32", "bfloat16"), reduce_ops=OPS)
# For messages a group's ranks are numbered in sorted order, whatever the order of its list.
MESSAGES = replace(ANY, groups="sorted", least_size=2)
NOT_AVERAGED = Refused(changes={"reduce_op": "avg"}, error="TypeError", match="must be one of sum, prod, min, max")
NO_ARRAY = refuses(invalid.NO_ARRAY, "TypeError", "must be tensor")
NO_SUCH_RANK = Refused(changes={"root": 9}, error="RuntimeError", match="doesn't contain the global rank 9")
ALL_KNOW = "it counts elements: a peer that counts rows matches only if parts are flat"


def spelled(path: str, collective: str, takes: Mapping[str, str], **more: Any) -> Spelling:
    """Return the spelling of a function with groups at this path under the framework's name."""
    parameters = takes if "group" in takes else {**takes, "group": "group"}
    return Spelling(framework=FRAMEWORK, path=f"mindspore.{path}", collective=collective, takes=parameters, **more)


def placeholder(case: Any) -> Tree:
    """Return the result of the ranks that have none."""
    return Shaped((1,), case.dtype)


def handle(value: Tree) -> Tree:
    """Return the value that an asynchronous call returns if it writes its result."""
    return Handle()


def asynchronous(spelling: Spelling) -> Spelling:
    """Return the same call with ``async_op=True``, which may continue after it has returned."""
    return replace(spelling, form="async", options={"async_op": True}, wrap=handle)


def counting(path: str) -> Spelling:
    """Return the spelling of ``all_to_all_v_c``: arrays are flat, and every rank knows all counts."""
    takes = {"output": "out", "input": "array of whole", "send_count_matrix": "counts", "group": "optional group"}
    return spelled(
        f"{path}.all_to_all_v_c",
        "all_to_all",
        takes,
        result="output",
        arrangement="flat",
        admits=FLAT,
        alone=ALL_KNOW,
    )
