"""Data parallel training in the style of TensorFlow's custom training loop: every replica takes its rows of a batch.

    collshim run --as tensorflow -n 2 docs/examples/tensorflow_data_parallel.py
    python docs/examples/tensorflow_data_parallel.py

The second line runs it on TensorFlow itself, with one replica, which prints the same losses to five digits.
"""

from typing import Any

import tensorflow as tf

STEPS = 60
BATCH = 4
INPUTS = [[1.0, 2.0], [2.0, 3.0], [4.0, 6.0], [3.0, 1.0]]
WANTED = [[8.5], [13.5], [26.5], [9.5]]  # of the weight (2, 3) and the bias 0.5


def replica() -> Any:
    """Return the number of the calling replica."""
    return tf.distribute.get_replica_context().replica_id_in_sync_group


def main() -> None:
    """Train; the first worker prints the loss of the whole batch every 20 steps."""
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        weight, bias = tf.Variable(tf.zeros([2, 1]), name="weight"), tf.Variable(tf.zeros([1]), name="bias")

    def step(x: Any, y: Any) -> Any:
        """Return this replica's share of the loss, and apply the sum of all replicas' gradients."""
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(tf.matmul(x, weight) + bias - y)) / BATCH
        gradients = tape.gradient(loss, [weight, bias])
        gradients = tf.distribute.get_replica_context().all_reduce("SUM", gradients)
        weight.assign_sub(0.02 * gradients[0])
        bias.assign_sub(0.02 * gradients[1])
        return loss

    @tf.function  # type: ignore[untyped-decorator]
    def distributed_step(x: Any, y: Any) -> Any:
        return strategy.reduce("SUM", strategy.run(step, args=(x, y)), axis=None)

    is_first = int(strategy.run(replica)) == 0
    batches = tf.data.Dataset.from_tensor_slices((INPUTS, WANTED)).batch(BATCH).repeat(STEPS)
    for number, (x, y) in enumerate(strategy.experimental_distribute_dataset(batches), start=1):
        loss = distributed_step(x, y)
        if number % 20 == 0 and is_first:
            print(f"{number}/{STEPS} loss: {float(loss):.7f}", flush=True)
    if is_first:
        print(f"weight: {weight.numpy().ravel().tolist()} bias: {bias.numpy().tolist()}", flush=True)


if __name__ == "__main__":
    main()
