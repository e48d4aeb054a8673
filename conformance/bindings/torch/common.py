"""What is common to torch's bindings: how a rank gets ready, how groups and reductions are said, what is admitted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from collshim.conformance.bindings import invalid
from collshim.conformance.bindings.admits import BITWISE, COMPLEX, FLOATS, Admits
from collshim.conformance.bindings.binding import Framework, Refused, refuses
from collshim.conformance.bindings.rank_context import RankContext

PATH = "torch.distributed."
DTYPES = ("bool", "uint8", "int8", "int32", "int64", *FLOATS, *COMPLEX)
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


def op(context: RankContext, name: str) -> Mapping[str, Any]:
    """The keyword argument that says a reduction."""
    return {"op": getattr(context.function("torch.distributed.ReduceOp"), _SAID[name])}


_NEEDED = ("is_initialized", "init_process_group", "new_group", "ReduceOp")
FRAMEWORK = Framework("torch", _enter, _group, needs=tuple(f"torch.distributed.{name}" for name in _NEEDED))
ANY = Admits(dtypes=DTYPES, groups="ordered")
RAGGED = Admits(dtypes=DTYPES, groups="ordered", ragged=True)
SUMS = Admits(dtypes=DTYPES, groups="ordered", reduce_ops=(*OPS, *BITWISE))
JOINED = Admits(dtypes=DTYPES, groups="ordered", least_ndim=1)
EXCHANGE = Admits(dtypes=DTYPES, groups="ordered", layouts=CONTIGUOUS, ragged=True, least_ndim=1)
MESSAGES = Admits(dtypes=DTYPES, groups="ordered", least_size=2)
OBJECTS = Admits(dtypes=("float32",), groups="ordered")
SENT_OBJECTS = Admits(dtypes=("float32",), groups="ordered", least_size=2)
UNORDERED = Refused(changes={"dtype": "complex64", "reduce_op": "prod"}, error="ValueError", match="complex")
NO_ARRAY = refuses(invalid.NO_ARRAY, "TypeError", "Invalid function argument")
BAD_LISTS = (
    NO_ARRAY,
    refuses(invalid.TUPLE, "TypeError", "Invalid function argument"),
    refuses(invalid.TOO_SHORT, "RuntimeError"),
)
NO_SUCH_ROOT = Refused(changes={"root": 7}, error="RuntimeError", match="root")
