"""A training with TensorFlow's names, whose port to torch is port_torch.py: collshim run -n 2 port_tensorflow.py."""

from __future__ import annotations

from typing import Any

import numpy as np

import collshim.tensorflow as tf

STEPS, ROWS = 12, 16
SHAPES = {"0.weight": (8, 2), "0.bias": (8,), "2.weight": (2, 8), "2.bias": (2,)}


def batch() -> tuple[np.ndarray, np.ndarray]:
    """Return the points of all steps, and the class of each."""
    points = np.random.default_rng(0).normal(size=(STEPS * ROWS, 2)).astype(np.float32)
    return points, (points[:, 0] > points[:, 1]).astype(np.int64)


def initial(shape: tuple[int, ...]) -> np.ndarray:
    """Return a parameter's first values, which are the same in every run."""
    return np.random.default_rng(sum(shape)).normal(scale=0.5, size=shape).astype(np.float32)


def train(batch: tuple[np.ndarray, np.ndarray]) -> tuple[list[Any], dict[str, Any]]:
    """Train on this replica's rows of each step; return the losses over all replicas, and the last gradients."""
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        weights = [tf.Variable(initial(shape)) for shape in SHAPES.values()]
        speeds = [tf.Variable(tf.zeros(shape)) for shape in SHAPES.values()]

    @tf.function
    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            hidden = tf.nn.relu(tf.matmul(x, weights[0], transpose_b=True) + weights[1])
            logits = tf.matmul(hidden, weights[2], transpose_b=True) + weights[3]
            each = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
            loss = tf.nn.compute_average_loss(each, global_batch_size=ROWS)  # divides by the rows of all replicas
        gradients = tape.gradient(loss, weights)
        gradients = tf.distribute.get_replica_context().all_reduce("SUM", gradients)
        for weight, speed, gradient in zip(weights, speeds, gradients, strict=True):
            speed.assign(0.9 * speed + gradient)
            weight.assign_sub(0.1 * speed)
        return loss, gradients

    rows = tf.data.Dataset.from_tensor_slices(batch).batch(ROWS)
    losses, gradients = [], []
    for x, y in strategy.experimental_distribute_dataset(rows):
        loss, gradients = strategy.run(step, args=(x, y))
        losses.append(strategy.reduce("SUM", loss, axis=None))
    return losses, dict(zip(SHAPES, gradients, strict=True))


if __name__ == "__main__":
    found, _ = train(batch())
    print([round(float(loss), 5) for loss in found])
