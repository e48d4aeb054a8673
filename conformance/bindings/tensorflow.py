"""TensorFlow: ``tf.distribute.ReplicaContext`` inside ``MultiWorkerMirroredStrategy.run``, and that strategy itself.

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
from collshim.conformance.bindings.rank_context import RankContext
from collshim.conformance.bindings.results import AllGatherJoined, AllReduced, Asked

_DTYPES = ("int32", "int64", *FLOATS)
_OPS = {"sum": "SUM", "avg": "MEAN"}
_REPLICA = "tensorflow.distribute.ReplicaContext."
_STRATEGY = "tensorflow.distribute.Strategy."


def _enter(context: RankContext) -> None:
    """A strategy over several workers is made before anything else; TensorFlow demands it."""
    _strategy(context)


def _group(context: RankContext, case: Any) -> None:
    """There are no groups."""


def _strategy(context: RankContext) -> Any:
    strategy = context.function("tensorflow.distribute.MultiWorkerMirroredStrategy")
    return context.once(("tensorflow", "strategy"), strategy)


def _in_replica(asked: Asked, collective: Callable[[Any], Tree]) -> Tree:
    """What ``collective`` returns for the replica's context, inside ``run``; where this is called inside, as it is."""
    context, strategy = asked.place.function("tensorflow.distribute.get_replica_context"), _strategy(asked.place)
    if asked.place.function("tensorflow.distribute.get_strategy")() is strategy:
        return collective(context())
    return strategy.run(lambda: collective(context()))


def _gather(asked: Asked, nested: bool = False) -> Tree:
    value = _nest(asked.given) if nested else asked.given
    return _in_replica(asked, lambda context: context.all_gather(value, axis=asked.case.axis))


def _op(asked: Asked, named: bool = False) -> Any:
    name = _OPS[asked.case.reduce_op]
    return name if named else getattr(asked.place.function("tensorflow.distribute.ReduceOp"), name)


def _reduce(asked: Asked, nested: bool = False, named: bool = False) -> Tree:
    value = _nest(asked.given) if nested else asked.given
    return _in_replica(asked, lambda context: context.all_reduce(_op(asked, named), value))


def _across_reduce(asked: Asked) -> Tree:
    return _strategy(asked.place).reduce(_op(asked), asked.given, axis=None)


def _across_gather(asked: Asked) -> Tree:
    return _strategy(asked.place).gather(asked.given, axis=asked.case.axis)


def _extended_reduce(asked: Asked) -> Tree:
    return _strategy(asked.place).extended.reduce_to(_op(asked), asked.given, asked.given)


def _extended_batch(asked: Asked) -> Tree:
    pairs = [(asked.given, asked.given), (asked.given, asked.given)]
    return _strategy(asked.place).extended.batch_reduce_to(_op(asked), pairs)


def _nest(value: Tree) -> Tree:
    return {"a": value, "b": [value, (value,)]}


def _twice(value: Tree) -> Tree:
    return [value, value]


@dataclass(frozen=True, kw_only=True)
class _Gather(AllGatherJoined):
    """A lone replica's value is not looked at, so a 0-d one stays 0-d."""

    def value(self, case: Any, rank: int, reference: Any) -> Tree:
        """All replicas' values end to end along ``axis``."""
        alone = len(case.ranks) == 1 and case.shape == ()
        return case.arrays()[0] if alone else super().value(case, rank, reference)


@dataclass(frozen=True, kw_only=True)
class _Reduce(AllReduced):
    """MEAN divides, so integers become float64 where replicas are several."""

    def value(self, case: Any, rank: int, reference: Any) -> Tree:
        """The sum, or the mean."""
        integer = np.issubdtype(case.dtype, np.integer)
        if case.reduce_op != "avg" or not integer:
            return super().value(case, rank, reference)
        total = reference.all_reduce(case.arrays(), "sum")[rank]
        return total if len(case.ranks) == 1 else np.asarray(total / np.float64(len(case.ranks)))


_NEEDED = ("tensorflow.distribute.MultiWorkerMirroredStrategy",)
FRAMEWORK = Framework("tensorflow", _enter, _group, needs=_NEEDED)
_GATHERED = Admits(dtypes=_DTYPES, axes=True, ragged=True, least_ndim=1)
_REDUCED = Admits(dtypes=_DTYPES, reduce_ops=tuple(_OPS), integer_avg=True)
_GATHERED_GRADIENT = Admits(dtypes=_DTYPES, axes=True, ragged=True, least_ndim=1, gradient=True)
_REDUCED_GRADIENT = Admits(dtypes=_DTYPES, reduce_ops=tuple(_OPS), integer_avg=True, gradient=True)
_RANGE = "Requires start <= limit"
_INT8 = "DataType int8 not in list of allowed values: float32, float16, float64, int32, int64"
_UINT8 = "'T' of uint8 is not in the list of allowed values: bfloat16, float, half, double, int32, int64"
_NOT_GATHERED = (
    Refused(changes={"axis": -1}, error="ValueError", match=_RANGE, least_size=2),
    Refused(changes={"shape": ()}, error="ValueError", match=_RANGE, least_size=2),
    Refused(changes={"dtype": "int8"}, error="TypeError", match=_INT8, least_size=2),
)
_NOT_REDUCED = (Refused(changes={"dtype": "uint8"}, error="InvalidArgumentError", match=_UINT8, least_size=2),)
_SEVERAL = "one call of a nest makes one collective for each of its leaves: a peer would have to make as many"
_NESTED: dict[str, Any] = {"form": "nested", "options": {"nested": True}, "alone": _SEVERAL, "wrap": _nest}


def _gathering(path: str, **more: Any) -> Binding:
    return _Gather(framework=FRAMEWORK, path=path, **more)


def _reducing(path: str, **more: Any) -> Binding:
    return _Reduce(framework=FRAMEWORK, path=path, **more)


_EXTENDED = "tensorflow.distribute.StrategyExtended."
BINDINGS: tuple[Binding, ...] = (
    _gathering(_REPLICA + "all_gather", admits=_GATHERED_GRADIENT, speak=_gather, refused=_NOT_GATHERED),
    _gathering(_REPLICA + "all_gather", admits=_GATHERED, speak=_gather, **_NESTED),
    _reducing(_REPLICA + "all_reduce", admits=_REDUCED_GRADIENT, speak=_reduce, refused=_NOT_REDUCED),
    _reducing(_REPLICA + "all_reduce", form="named", options={"named": True}, admits=_REDUCED, speak=_reduce),
    _reducing(_REPLICA + "all_reduce", admits=_REDUCED, speak=_reduce, **_NESTED),
    _gathering(_STRATEGY + "gather", admits=_GATHERED, speak=_across_gather),
    _reducing(_STRATEGY + "reduce", admits=_REDUCED, speak=_across_reduce),
    _reducing(_EXTENDED + "reduce_to", admits=_REDUCED, speak=_extended_reduce),
    _reducing(_EXTENDED + "batch_reduce_to", admits=_REDUCED, speak=_extended_batch, wrap=_twice, alone=_SEVERAL),
)
