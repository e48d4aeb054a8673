"""Return a method of the replica context; called outside ``run``, of one that belongs inside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import collshim.tensorflow as tf
from collshim.world import World
from tests.robustness.context import SIZE, RankContext
from tests.robustness.spelled import spelled
from tests.robustness.spelling import Arguments, Call, Spelling, Surface


def _enter(world: World) -> Mapping[str, tuple[tuple[int, ...], Any]]:
    return {"all": (tuple(range(SIZE)), tf.distribute.MultiWorkerMirroredStrategy())}


def _of_replica(name: str) -> Call:
    """``Strategy.extended`` in place of a strategy."""

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


def _reduce_over_replicas(context: RankContext, arguments: Arguments) -> Any:
    return _of_strategy("reduce")(context, {"axis": None, **arguments})


def _spelled(name: str, call: Call, where: str, **more: Any) -> Spelling:
    roles = {"where": where} | more.pop("more", {})
    return spelled(f"tensorflow.distribute.{name}", call=call, more=roles, kept=("tensorflow", "strategy"), **more)


_OPTIONS = {"options": "options"}

SURFACE = Surface(
    _enter,
    (
        _spelled("ReplicaContext.all_reduce", _of_replica("all_reduce"), "outside", more=_OPTIONS),
        Spelling(
            "ReplicaContext.all_reduce",
            roles={"reduce_op": "TensorFlow's op", "value": "nest to reduce", "where": "outside"},
            good=lambda h: {"reduce_op": "sum", "value": {"a": [h.own()], "b": (h.own(),)}},
            right=lambda h: {"a": [h.result("all_reduce")], "b": (h.result("all_reduce"),)},
            call=_of_replica("all_reduce"),
        ),
        _spelled("ReplicaContext.all_gather", _of_replica("all_gather"), "outside", more=_OPTIONS, agreed=("dtype",)),
        Spelling(
            "ReplicaContext.merge_call",
            roles={"where": "outside"},
            good=lambda h: {"merge_fn": lambda strategy, value: value + 1, "args": (h.nonce,)},
            right=lambda h: h.nonce + 1,
            call=_of_replica("merge_call"),
        ),
        _spelled("Strategy.reduce", _reduce_over_replicas, "inside"),
        Spelling(
            "Strategy.reduce",
            roles={
                "reduce_op": "TensorFlow's op",
                "value": "array to sum along an axis",
                "axis": "axis to sum along",
                "where": "inside",
            },
            good=lambda h: {"reduce_op": "SUM", "value": h.own(), "axis": 0},
            right=lambda h: h.result("all_reduce").sum(0),
            call=_of_strategy("reduce"),
        ),
        _spelled("Strategy.gather", _of_strategy("gather"), "inside", agreed=("dtype",)),
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
            right=lambda h: h.result("all_reduce"),
            call=lambda h, arguments: _of_strategy("reduce_to")(h._replace(group=_Extended(h.group)), arguments),
        ),
    ),
    array_kinds=("torch",),
)


class _Extended:
    """``Strategy.extended`` where a strategy is called for."""

    def __init__(self, strategy: Any) -> None:
        self.run = strategy.run
        self.reduce_to = strategy.extended.reduce_to
