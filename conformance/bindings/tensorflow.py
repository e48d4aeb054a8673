"""TensorFlow: the methods of ``tf.distribute.ReplicaContext`` inside ``MultiWorkerMirroredStrategy.run``.

From tensorflow 2.21.0 run on CPU with one replica per worker, so that what ``run`` returns is the local
value. A nest goes in and the same nest comes out. One replica gets its value back unchanged and unchecked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from collshim.conformance.bindings.admits import FLOATS, Admits
from collshim.conformance.bindings.answers import Tree
from collshim.conformance.bindings.binding import Binding, Framework, Refused
from collshim.conformance.bindings.places import Place
from collshim.conformance.bindings.results import AllGatherJoined, AllReduced, Asked

_DTYPES = ("int32", "int64", *FLOATS)
_OPS = {"sum": "SUM", "avg": "MEAN"}
_REPLICA = "tensorflow.distribute.ReplicaContext."


def _enter(place: Place) -> None:
    place.function("tensorflow")


def _group(place: Place, case: Any) -> None:
    """There are no groups."""


def _in_replica(asked: Asked, collective: Callable[[Any], Tree]) -> Tree:
    """What ``collective`` returns for the replica's context, inside ``run``."""
    strategy = asked.place.function("tensorflow.distribute.MultiWorkerMirroredStrategy")
    context = asked.place.function("tensorflow.distribute.get_replica_context")
    return asked.place.once(("tensorflow", "strategy"), strategy).run(lambda: collective(context()))


def _gather(asked: Asked, nested: bool = False) -> Tree:
    value = _nest(asked.given) if nested else asked.given
    return _in_replica(asked, lambda context: context.all_gather(value, axis=asked.case.axis))


def _reduce(asked: Asked, nested: bool = False, named: bool = False) -> Tree:
    name = _OPS[asked.case.reduce_op]
    op = name if named else getattr(asked.place.function("tensorflow.distribute.ReduceOp"), name)
    value = _nest(asked.given) if nested else asked.given
    return _in_replica(asked, lambda context: context.all_reduce(op, value))


def _nest(value: Tree) -> Tree:
    return {"a": value, "b": [value, (value,)]}


@dataclass(frozen=True, kw_only=True)
class _Gather(AllGatherJoined):
    """``ReplicaContext.all_gather``: a lone replica's value is not looked at, so a 0-d one stays 0-d."""

    def value(self, case: Any, rank: int, reference: Any) -> Tree:
        """All replicas' values end to end along ``axis``."""
        return case.arrays()[0] if len(case.ranks) == 1 else super().value(case, rank, reference)


@dataclass(frozen=True, kw_only=True)
class _Reduce(AllReduced):
    """``ReplicaContext.all_reduce``: MEAN divides, so integers become float64 where replicas are several."""

    def value(self, case: Any, rank: int, reference: Any) -> Tree:
        """The sum, or the mean."""
        integer = np.issubdtype(case.dtype, np.integer)
        if case.reduce_op == "avg" and integer and len(case.ranks) > 1:
            total = reference.all_reduce(case.arrays(), "sum")[rank]
            return np.asarray(total / np.float64(len(case.ranks)))
        return case.arrays()[0] if len(case.ranks) == 1 else super().value(case, rank, reference)


FRAMEWORK = Framework("tensorflow", _enter, _group)
_GATHERED = Admits(dtypes=_DTYPES, axes=True, ragged=True, least_ndim=1)
_REDUCED = Admits(dtypes=_DTYPES, reduce_ops=tuple(_OPS), integer_avg=True)
_RANGE = "Requires start <= limit"
_INT8 = "DataType int8 not in list of allowed values: float32, float16, float64, int32, int64"
_UINT8 = "'T' of uint8 is not in the list of allowed values: bfloat16, float, half, double, int32, int64"
_NOT_GATHERED = (
    Refused(changes={"axis": -1}, error="ValueError", match=_RANGE, least_size=2),
    Refused(changes={"shape": ()}, error="ValueError", match=_RANGE, least_size=2),
    Refused(changes={"dtype": "int8"}, error="TypeError", match=_INT8, least_size=2),
)
_NOT_REDUCED = (Refused(changes={"dtype": "uint8"}, error="InvalidArgumentError", match=_UINT8, least_size=2),)
_NESTED = {"nested": True}

BINDINGS: tuple[Binding, ...] = (
    _Gather(framework=FRAMEWORK, path=_REPLICA + "all_gather", admits=_GATHERED, speak=_gather, refused=_NOT_GATHERED),
    _Gather(
        framework=FRAMEWORK,
        path=_REPLICA + "all_gather",
        form="nested",
        options=_NESTED,
        posts=3,
        admits=_GATHERED,
        speak=_gather,
        wrap=_nest,
    ),
    _Reduce(framework=FRAMEWORK, path=_REPLICA + "all_reduce", admits=_REDUCED, speak=_reduce, refused=_NOT_REDUCED),
    _Reduce(
        framework=FRAMEWORK,
        path=_REPLICA + "all_reduce",
        form="named",
        options={"named": True},
        admits=_REDUCED,
        speak=_reduce,
    ),
    _Reduce(
        framework=FRAMEWORK,
        path=_REPLICA + "all_reduce",
        form="nested",
        options=_NESTED,
        posts=3,
        admits=_REDUCED,
        speak=_reduce,
        wrap=_nest,
    ),
)
