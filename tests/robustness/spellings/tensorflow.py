"""``collshim.tensorflow.distribute``: methods of a replica context and of a strategy, over all ranks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import collshim.tensorflow as tf
from collshim.world import World
from tests.robustness.context import SIZE, RankContext, joined
from tests.robustness.spelling import Arguments, Call, Spelling, Surface


def _enter(world: World) -> Mapping[str, tuple[tuple[int, ...], Any]]:
    return {"all": (tuple(range(SIZE)), tf.distribute.MultiWorkerMirroredStrategy())}


def _of_replica(name: str) -> Call:
    """A method of the replica context; where the call is outside ``run``, of one that belongs inside."""

    def call(context: RankContext, arguments: Arguments) -> Any:
        strategy = context.group
        if arguments.pop("where", "inside") == "inside":
            return strategy.run(lambda: getattr(tf.distribute.get_replica_context(), name)(**arguments))
        return getattr(strategy.run(tf.distribute.get_replica_context), name)(**arguments)

    return call


def _of_strategy(name: str) -> Call:
    def call(context: RankContext, arguments: Arguments) -> Any:
        strategy = context.group
        if arguments.pop("where", "outside") == "outside":
            return getattr(strategy, name)(**arguments)
        return strategy.run(lambda: getattr(strategy, name)(**arguments))

    return call


_OPS = {"sum": "SUM", "max": "MEAN"}
_SAME = ("rows", "dtype")

SURFACE = Surface(
    _enter,
    (
        Spelling(
            "ReplicaContext.all_reduce",
            roles={"reduce_op": "TensorFlow's op", "value": "nest to reduce", "options": "options", "where": "outside"},
            good=lambda h: {"reduce_op": _OPS[h.op], "value": h.own()},
            right=RankContext.total,
            op="all_reduce",
            differs=(*_SAME, "op"),
            call=_of_replica("all_reduce"),
        ),
        Spelling(
            "ReplicaContext.all_reduce",
            roles={"reduce_op": "TensorFlow's op", "value": "nest to reduce", "where": "outside"},
            good=lambda h: {"reduce_op": "sum", "value": {"a": [h.own()], "b": (h.own(),)}},
            right=lambda h: {"a": [h.total()], "b": (h.total(),)},
            call=_of_replica("all_reduce"),
        ),
        Spelling(
            "ReplicaContext.all_gather",
            roles={"value": "nest to gather", "axis": "axis", "options": "options", "where": "outside"},
            good=lambda h: {"value": h.own(), "axis": 0},
            right=lambda h: joined(h.everyones()),
            op="all_gather",
            differs=("dtype",),
            call=_of_replica("all_gather"),
        ),
        Spelling(
            "ReplicaContext.merge_call",
            roles={"where": "outside"},
            good=lambda h: {"merge_fn": lambda strategy, value: value + 1, "args": (h.nonce,)},
            right=lambda h: h.nonce + 1,
            call=_of_replica("merge_call"),
        ),
        Spelling(
            "Strategy.reduce",
            roles={"reduce_op": "TensorFlow's op", "value": "nest", "where": "inside"},
            good=lambda h: {"reduce_op": _OPS[h.op], "value": h.own(), "axis": None},
            right=RankContext.total,
            op="all_reduce",
            differs=(*_SAME, "op"),
            call=_of_strategy("reduce"),
        ),
        Spelling(
            "Strategy.reduce",
            roles={
                "reduce_op": "TensorFlow's op",
                "value": "array to sum along an axis",
                "axis": "axis to sum along",
                "where": "inside",
            },
            good=lambda h: {"reduce_op": "SUM", "value": h.own(), "axis": 0},
            right=lambda h: h.total().sum(0),
            call=_of_strategy("reduce"),
        ),
        Spelling(
            "Strategy.gather",
            roles={"value": "nest of arrays with axes", "axis": "axis", "where": "inside"},
            good=lambda h: {"value": h.own(), "axis": 0},
            right=lambda h: joined(h.everyones()),
            op="all_gather",
            differs=("dtype",),
            call=_of_strategy("gather"),
        ),
        Spelling(
            "Strategy.run",
            roles={"args": "args of run", "where": "inside"},
            good=lambda h: {"fn": lambda one: one + 2, "args": (h.nonce,)},
            right=lambda h: h.nonce + 2,
            call=_of_strategy("run"),
        ),
        Spelling(
            "Strategy.extended.reduce_to",
            roles={"reduce_op": "TensorFlow's op", "value": "nest", "destinations": "destinations", "where": "inside"},
            good=lambda h: {"reduce_op": "SUM", "value": h.own(), "destinations": "/cpu:0"},
            right=RankContext.total,
            call=lambda h, arguments: _of_strategy("reduce_to")(h._replace(group=_Extended(h.group)), arguments),
        ),
    ),
)


class _Extended:
    """``Strategy.extended`` where a strategy is called for."""

    def __init__(self, strategy: Any) -> None:
        self.run = strategy.run
        self.reduce_to = strategy.extended.reduce_to
