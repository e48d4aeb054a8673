"""TensorFlow's reference manual, ``tf.distribute.ReplicaContext.all_gather``: two replicas, threads or processes."""

from __future__ import annotations

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
VALUE = "tf.constant([1, 2, 3])"
RUN_VALUE = "strategy.run(gather_value)"

GATHER_NEST = """
@tf.function
def gather_nest():
    ctx = tf.distribute.get_replica_context()
    value_1 = tf.constant([1, 2, 3])
    value_2 = tf.constant([[1, 2], [3, 4]])
    return ctx.all_gather([value_1, value_2], axis=0)

"""
NEST = "[tf.constant([1, 2, 3]), tf.constant([[1, 2], [3, 4]])]"
RUN_NEST = "strategy.run(gather_nest)"

GATHER_UNEVEN = """
@tf.function
def gather_uneven():
    ctx = tf.distribute.get_replica_context()
    value = values[ctx.replica_id_in_sync_group]
    return ctx.all_gather(value, axis=0)

"""
UNEVEN = """
values = [
    {"a": tf.constant([0]), "b": tf.constant([[0, 1]])},
    {"a": tf.constant([1]), "b": tf.constant([[2, 3], [4, 5]])},
]
"""
RUN_UNEVEN = "strategy.run(gather_uneven)"


def start() -> Names:
    """Return the name that ``import collshim.tensorflow as tf`` binds, and ``rank``, to select this rank's input."""
    return {"tf": tf, "rank": collshim.current().rank}


def _mirrored(name: str, before: str, given: str, call: str) -> Example:
    """Make an example with both replicas in one process, so that input and result are sequences of two."""
    results = "strategy.experimental_local_results(returned)"
    return Example(name, MIRRORED + call, before, given=given, holds=results, replicas=True)


def _multi_worker(name: str, before: str, given: str, call: str) -> Example:
    """Make an example with a replica on each rank; its functions are those of the examples before it."""
    return Example(f"{name}, two workers", MULTI_WORKER + call, before, given=given)


SHEETS = (
    Sheet(
        framework="TensorFlow",
        title="tf.distribute.ReplicaContext.all_gather",
        setting="MirroredStrategy: two replicas, threads of one process; no GPU needs to have these names",
        ranks=1,
        start=start,
        examples=(
            _mirrored("a tensor", "", f"[{VALUE}] * 2", GATHER_VALUE + RUN_VALUE),
            _mirrored("a nest", "", f"[{NEST}] * 2", GATHER_NEST + RUN_NEST),
            _mirrored("unequal shapes", UNEVEN, "values", GATHER_UNEVEN + RUN_UNEVEN),
        ),
    ),
    Sheet(
        framework="TensorFlow",
        title="tf.distribute.ReplicaContext.all_gather",
        setting="MultiWorkerMirroredStrategy in worlds of two ranks: 0 and 1 are shown, 2 and 3 must agree",
        ranks=2,
        start=start,
        examples=(
            _multi_worker("a tensor", GATHER_VALUE, VALUE, RUN_VALUE),
            _multi_worker("a nest", GATHER_NEST, NEST, RUN_NEST),
            _multi_worker("unequal shapes", UNEVEN + GATHER_UNEVEN, "values[rank]", RUN_UNEVEN),
        ),
    ),
)
