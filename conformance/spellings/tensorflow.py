"""TensorFlow: ``tf.distribute.ReplicaContext`` inside ``MultiWorkerMirroredStrategy.run``, and that strategy itself.

Observed with tensorflow 2.21.0 on CPU with one replica per worker, so that the result of ``run`` is the local value. A
nest is passed and a nest of the same structure is returned; NumPy's arrays become tensors. A single replica receives
its value back unchanged and unchecked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from collshim.conformance.bindings.admits import FLOATS, Admits
from collshim.conformance.bindings.answers import Tree
from collshim.conformance.bindings.arguments import Invocation
from collshim.conformance.bindings.binding import Binding, Framework, Refused
from collshim.conformance.bindings.rank_context import RankContext
from collshim.conformance.bindings.spelling import Spelling

_OPS = {"sum": "SUM", "avg": "MEAN"}
_DISTRIBUTE = "tensorflow.distribute."


def _enter(context: RankContext) -> None:
    """Make a strategy over several workers before anything else, as TensorFlow requires."""
    _strategy(context)


def _group(context: RankContext, case: Any) -> None:
    """Return None: TensorFlow has no groups."""


def _op(context: RankContext, name: str) -> Any:
    return getattr(context.function(_DISTRIBUTE + "ReduceOp"), _OPS[name])


def _strategy(context: RankContext) -> Any:
    strategy = context.function(_DISTRIBUTE + "MultiWorkerMirroredStrategy")
    return context.once(("tensorflow", "strategy"), strategy)


def _call_in_replica(name: str, change: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> Callable[[Invocation], Tree]:
    """Return a function that calls this method of the replica's context, inside ``run`` unless already inside it."""

    def speak(asked: Invocation) -> Tree:
        context = asked.asker.context
        strategy, current = _strategy(context), context.function(_DISTRIBUTE + "get_replica_context")

        def collective() -> Tree:
            return getattr(current(), name)(*change(asked.positional), **asked.keywords)

        inside = context.function(_DISTRIBUTE + "get_strategy")() is strategy
        return collective() if inside else strategy.run(collective)

    return speak


def _call_on_strategy(name: str) -> Callable[[Invocation], Tree]:
    return lambda asked: getattr(_strategy(asked.asker.context), name)(*asked.positional, **asked.keywords)


def _reduce_to(asked: Invocation) -> Tree:
    return _strategy(asked.asker.context).extended.reduce_to(*asked.positional, asked.positional[-1])


def _batch_reduce_to(asked: Invocation) -> Tree:
    op, value = asked.positional
    return _strategy(asked.asker.context).extended.batch_reduce_to(op, [(value, value), (value, value)])


def _unchanged(positional: tuple[Any, ...]) -> tuple[Any, ...]:
    return positional


def _with_a_nest(positional: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*positional[:-1], _nest(positional[-1]))


def _by_name(positional: tuple[Any, ...]) -> tuple[Any, ...]:
    return (positional[0].name, *positional[1:])


def _nest(value: Tree) -> Tree:
    return {"a": value, "b": [value, (value,)]}


def _twice(value: Tree) -> Tree:
    return [value, value]


def _expect_gather(case: Any, rank: int, reference: Any) -> Tree:
    """Expect a 0-d value unchanged from a single replica, which does not check it."""
    parts = reference.all_gather(case.arrays())[rank]
    alone = len(case.ranks) == 1 and case.shape == ()
    return parts[0] if alone else reference.concatenated(parts, case.axis)


def _expect_reduction(case: Any, rank: int, reference: Any) -> Tree:
    """Expect float64 from a MEAN of integers over several replicas, since MEAN divides."""
    if case.reduce_op != "avg" or not case.dtype.startswith("int"):
        return reference.all_reduce(case.arrays(), case.reduce_op)[rank]
    total = reference.all_reduce(case.arrays(), "sum")[rank]
    return total if len(case.ranks) == 1 else np.asarray(total / np.float64(len(case.ranks)))


FRAMEWORK = Framework("tensorflow", _enter, _group, op=_op, needs=(_DISTRIBUTE + "MultiWorkerMirroredStrategy",))
_DTYPES = ("int32", "int64", *FLOATS)
_GATHERED = Admits(dtypes=_DTYPES, kinds=("torch",), axes=True, ragged=True, least_ndim=1)
_REDUCED = Admits(dtypes=(*_DTYPES, "bfloat16"), kinds=("torch",), reduce_ops=tuple(_OPS), integer_avg=True)
_RANGE = "Requires start <= limit"
_INT8 = "DataType int8 not in list of allowed values: float32, float16, float64, int32, int64(?!,)"
_UINT8 = "'T' of uint8 is not in the list of allowed values: bfloat16, float, half, double, int32, int64(?!,)"
_NOT_GATHERED = (
    Refused(changes={"axis": -1}, error="ValueError", match=_RANGE, least_size=2),
    Refused(changes={"shape": ()}, error="ValueError", match=_RANGE, least_size=2),
    Refused(changes={"dtype": "int8"}, error="TypeError", match=_INT8, least_size=2),
)
_NOT_REDUCED = (Refused(changes={"dtype": "uint8"}, error="InvalidArgumentError", match=_UINT8, least_size=2),)
_FLUSHES = "TensorFlow's threads on a CPU flush subnormal numbers of float32, float64 and bfloat16 as they compute"
_SEVERAL = "one call with a nest makes one collective for each of its leaves: a peer would have to make as many"


def _gathering(owner: str, name: str, role: str, speak: Callable[[Invocation], Tree], **more: Any) -> Spelling:
    return _spelled(
        f"{owner}.{name}",
        "all_gather",
        {"value": role, "axis": "axis"},
        **{"peculiar": _expect_gather, "admits": _GATHERED, "speak": speak} | more,
    )


def _reducing(owner: str, name: str, role: str, speak: Callable[[Invocation], Tree], **more: Any) -> Spelling:
    return _spelled(
        f"{owner}.{name}",
        "all_reduce",
        {"reduce_op": "TensorFlow's op", "value": role},
        **{"peculiar": _expect_reduction, "admits": _REDUCED, "speak": speak, "flushes": _FLUSHES} | more,
    )


def _spelled(path: str, collective: str, takes: Mapping[str, str], **more: Any) -> Spelling:
    return Spelling(framework=FRAMEWORK, path=_DISTRIBUTE + path, collective=collective, takes=takes, **more)


def _nested(spelling: Spelling, name: str) -> Spelling:
    speak, plain = _call_in_replica(name, _with_a_nest), replace(spelling.admits, gradient=False)
    return replace(spelling, form="nested", speak=speak, wrap=_nest, admits=plain, refused=(), alone=_SEVERAL)


_ALL_GATHER = _gathering(
    "ReplicaContext",
    "all_gather",
    "nest to gather",
    _call_in_replica("all_gather", _unchanged),
    admits=replace(_GATHERED, gradient=True),
    refused=_NOT_GATHERED,
    example="""\
x = tf.constant([1, 2]) + 10 * rank
strategy.run(lambda: replica().all_gather(x, axis=0))
""",
    notes=(
        "It is a method of the replica's context, called inside `strategy.run`.",
        ("Lengths along `axis` may differ between replicas; `axis` has no default, and must not be negative."),
        "It takes a nest of tensors and returns a nest of the same structure.",
    ),
)
_ALL_REDUCE = _reducing(
    "ReplicaContext",
    "all_reduce",
    "nest to reduce",
    _call_in_replica("all_reduce", _unchanged),
    admits=replace(_REDUCED, gradient=True),
    refused=_NOT_REDUCED,
    example="""\
x = tf.constant([1, 2]) + 10 * rank
strategy.run(lambda: replica().all_reduce("SUM", x))
""",
    notes=(
        "`reduce_op` is `SUM` or `MEAN`, as text or as `tf.distribute.ReduceOp`.",
        "It takes a nest of tensors and returns a nest of the same structure.",
        "A MEAN of integers over several replicas is float64.",
    ),
)
_NAMED = replace(_ALL_REDUCE, form="named", speak=_call_in_replica("all_reduce", _by_name), admits=_REDUCED, refused=())
_BATCH_REDUCE_TO = _spelled(
    "StrategyExtended.batch_reduce_to",
    "all_reduce",
    {"reduce_op": "TensorFlow's op", "value_destination_pairs": "nest"},
    peculiar=_expect_reduction,
    admits=_REDUCED,
    speak=_batch_reduce_to,
    flushes=_FLUSHES,
    wrap=_twice,
    alone=_SEVERAL,
)
SPELLINGS: tuple[Binding, ...] = (
    _ALL_GATHER,
    _nested(_ALL_GATHER, "all_gather"),
    _ALL_REDUCE,
    _NAMED,
    _nested(_ALL_REDUCE, "all_reduce"),
    _gathering("Strategy", "gather", "nest of arrays with axes", _call_on_strategy("gather")),
    _reducing("Strategy", "reduce", "nest", _call_on_strategy("reduce"), options={"axis": None}),
    _reducing("StrategyExtended", "reduce_to", "nest", _reduce_to),
    _BATCH_REDUCE_TO,
)
