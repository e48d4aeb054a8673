"""TensorFlow's reference manual, ``tf.distribute.ReplicaContext.all_gather``: two replicas, threads or processes."""

from __future__ import annotations

from typing import Any

import collshim
import collshim.tensorflow as tf
from collshim.demo.example import Example, Names, Sheet

MIRRORED = 'strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])\n'
MULTI_WORKER = "strategy = tf.distribute.MultiWorkerMirroredStrategy()\n"

GATHER_VALUE = """
@tf.function
def gather_value():
    ctx = tf.distribute.get_replica_context()
    local_value = tf.constant([1, 2, 3])
    return ctx.all_gather(local_value, axis=0)

"""

GATHER_NEST = """
@tf.function
def gather_nest():
    ctx = tf.distribute.get_replica_context()
    value_1 = tf.constant([1, 2, 3])
    value_2 = tf.constant([[1, 2], [3, 4]])
    return ctx.all_gather([value_1, value_2], axis=0)

"""

GATHER_UNEVEN = """
@tf.function
def gather_uneven():
    ctx = tf.distribute.get_replica_context()
    value = values[ctx.replica_id_in_sync_group]
    return ctx.all_gather(value, axis=0)

"""

VALUE = "tf.constant([1, 2, 3])"
NEST = "[tf.constant([1, 2, 3]), tf.constant([[1, 2], [3, 4]])]"
UNEVEN = """
values = [
    {"a": tf.constant([0]), "b": tf.constant([[0, 1]])},
    {"a": tf.constant([1]), "b": tf.constant([[2, 3], [4, 5]])},
]
"""


def start() -> Names:
    """What ``import collshim.tensorflow as tf`` binds; ``rank`` tells which input is this rank's."""
    return {"tf": tf, "rank": collshim.current().rank}


def _by_replica(**fields: Any) -> Example:
    """One process holds both replicas: what went in and what came out is a sequence of two."""
    return Example(holds="strategy.experimental_local_results(returned)", replicas=True, **fields)


SHEETS = (
    Sheet(
        framework="TensorFlow",
        title="tf.distribute.ReplicaContext.all_gather",
        setting="MirroredStrategy: two replicas, threads of one process",
        ranks=1,
        start=start,
        examples=(
            _by_replica(name="a tensor", given=f"[{VALUE}] * 2", call=MIRRORED + GATHER_VALUE + "strategy.run(gather_value)"),
            _by_replica(name="a nest", given=f"[{NEST}] * 2", call=MIRRORED + GATHER_NEST + "strategy.run(gather_nest)"),
            _by_replica(name="unequal shapes", before=UNEVEN, given="values", call=MIRRORED + GATHER_UNEVEN + "strategy.run(gather_uneven)"),
        ),
    ),
    Sheet(
        framework="TensorFlow",
        title="tf.distribute.ReplicaContext.all_gather",
        setting="MultiWorkerMirroredStrategy: a world of two ranks",
        ranks=2,
        start=start,
        examples=(
            Example(name="a tensor, two workers", given=VALUE, before=GATHER_VALUE, call=MULTI_WORKER + "strategy.run(gather_value)"),
            Example(name="a nest, two workers", given=NEST, before=GATHER_NEST, call=MULTI_WORKER + "strategy.run(gather_nest)"),
            Example(name="unequal shapes, two workers", before=UNEVEN + GATHER_UNEVEN, given="values[rank]", call=MULTI_WORKER + "strategy.run(gather_uneven)"),
        ),
    ),
)
