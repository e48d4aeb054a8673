"""A contrastive loss over the batches of all replicas, in TensorFlow's style: features are gathered with gradients.

    collshim run --as tensorflow -n 2 docs/examples/tensorflow_contrastive.py
    python docs/examples/tensorflow_contrastive.py

The second line runs it on TensorFlow itself, with one replica, which prints the same losses to five digits.
"""

from typing import Any

import tensorflow as tf

STEPS = 30
IMAGES = [[1.0, 0.2, 0.1], [0.1, 1.0, 0.3], [0.4, 0.1, 1.0], [0.7, 0.7, 0.1]]
TEXTS = [[0.9, 0.1], [0.2, 1.1], [-0.8, 0.3], [0.6, -0.9]]


def contrast(own: Any, others: Any, places: Any) -> Any:
    """Return for each row the cross entropy of finding its partner among all replicas' rows."""
    logits = tf.matmul(own, others, transpose_b=True) / 0.5
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=places, logits=logits)


def main() -> None:
    """Train; the first worker prints the mean loss of all rows every 10 steps."""
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        of_images = tf.Variable(tf.constant([[1.0, 0.0], [0.0, 1.0], [0.5, -0.5]]), name="of_images")
        of_texts = tf.Variable(tf.constant([[0.3, 1.0], [1.0, -0.3]]), name="of_texts")

    def step(images: Any, texts: Any) -> Any:
        """Return this replica's share of the loss; the gathered features get gradients from all replicas."""
        context = tf.distribute.get_replica_context()
        rows = tf.range(len(IMAGES) // context.num_replicas_in_sync)
        places = rows + context.replica_id_in_sync_group * len(rows)
        with tf.GradientTape() as tape:
            a = tf.math.l2_normalize(tf.matmul(images, of_images), axis=1)
            b = tf.math.l2_normalize(tf.matmul(texts, of_texts), axis=1)
            every_a, every_b = context.all_gather([a, b], axis=0)
            loss = tf.reduce_sum(contrast(a, every_b, places) + contrast(b, every_a, places)) / len(IMAGES)
        gradients = context.all_reduce("SUM", tape.gradient(loss, [of_images, of_texts]))
        of_images.assign_sub(0.1 * gradients[0])
        of_texts.assign_sub(0.1 * gradients[1])
        return loss

    is_first = int(strategy.run(lambda: tf.distribute.get_replica_context().replica_id_in_sync_group)) == 0
    batches = tf.data.Dataset.from_tensor_slices((IMAGES, TEXTS)).batch(len(IMAGES)).repeat(STEPS)
    for number, (images, texts) in enumerate(strategy.experimental_distribute_dataset(batches), start=1):
        loss = strategy.reduce("SUM", strategy.run(step, args=(images, texts)), axis=None)
        if number % 10 == 0 and is_first:
            print(f"{number}/{STEPS} loss: {float(loss):.7f}", flush=True)
    if is_first:
        print(f"weights: {[*of_images.numpy().ravel().tolist(), *of_texts.numpy().ravel().tolist()]}", flush=True)


if __name__ == "__main__":
    main()
