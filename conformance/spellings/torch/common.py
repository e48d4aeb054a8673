"""The common parts of torch's spellings: how a rank is initialized, how groups and reductions are passed, limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from collshim.conformance.bindings import invalid
from collshim.conformance.bindings.admits import COMPLEX, FLOATS, Admits
from collshim.conformance.bindings.binding import Framework, Refused, refuses
from collshim.conformance.bindings.rank_context import RankContext
from collshim.conformance.bindings.spelling import Spelling
from collshim.conformance.reference import BITWISE

PATH = "torch.distributed."
DTYPES = ("bool", "uint8", "int8", "int32", "int64", *FLOATS, "bfloat16", *COMPLEX)
CONTIGUOUS = ("contiguous",)
OPS = {"sum": "SUM", "prod": "PRODUCT", "min": "MIN", "max": "MAX", "avg": "AVG"}
_SAID = {**OPS, "band": "BAND", "bor": "BOR", "bxor": "BXOR"}


def _enter(context: RankContext) -> None:
    if not context.function("torch.distributed.is_initialized")():
        init = context.function("torch.distributed.init_process_group")
        method = f"tcp://{context.address}:{context.port}"
        init(context.backend, init_method=method, rank=context.rank, world_size=context.size)


def _group(context: RankContext, case: Any) -> Any:
    if case.group is None:
        return None
    new_group = context.function("torch.distributed.new_group")
    return context.once(("torch", case.group), lambda: new_group(list(case.group), sort_ranks=False))


def _op(context: RankContext, name: str) -> Any:
    return getattr(context.function("torch.distributed.ReduceOp"), _SAID[name])


_NEEDED = ("is_initialized", "init_process_group", "new_group", "ReduceOp")
FRAMEWORK = Framework("torch", _enter, _group, op=_op, needs=tuple(f"torch.distributed.{name}" for name in _NEEDED))
ANY = Admits(dtypes=DTYPES, groups="ordered")
ROWS = replace(ANY, least_ndim=1)
PARTS = replace(ANY, layouts=CONTIGUOUS)
AVERAGES = replace(ANY, reduce_ops=tuple(OPS), integer_avg=True)
SUMS = replace(AVERAGES, reduce_ops=(*OPS, *BITWISE))
EXCHANGE = replace(PARTS, ragged=True, least_ndim=1)
MESSAGES = replace(ANY, least_size=2)
OBJECTS = replace(ANY, dtypes=("float32",))
UNORDERED = Refused(changes={"dtype": "complex64", "reduce_op": "prod"}, error="ValueError", match="complex")
NO_ARRAY = refuses(invalid.NO_ARRAY, "TypeError", "Invalid function argument")
BAD_LISTS = (
    NO_ARRAY,
    refuses(invalid.TUPLE, "TypeError", "Invalid function argument"),
    refuses(invalid.TOO_SHORT, "RuntimeError"),
)
NO_SUCH_ROOT = Refused(changes={"root": 7}, error="RuntimeError", match="root")


def spelled(name: str, collective: str, takes: Mapping[str, str], **more: Any) -> Spelling:
    """Return the spelling of a function with groups."""
    parameters = {**takes, "group": "optional group"}
    return Spelling(framework=FRAMEWORK, path=PATH + name, collective=collective, takes=parameters, **more)
