"""Train one data-parallel step with TensorFlow's MultiWorkerMirroredStrategy and GradientTape."""

from __future__ import annotations

from typing import Any

import numpy as np

import collshim.tensorflow as tf


def batch() -> tuple[Any, Any]:
    """Return 8 rows of inputs, and what is wanted for each."""
    rows = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)
    return rows, rows.sum(1, keepdims=True)


def step(batch: tuple[Any, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the loss of this replica's rows, and the gradients' means over the replicas."""
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    numbers = np.random.default_rng(1)
    with strategy.scope():
        hidden = tf.Variable(numbers.normal(size=(3, 5)).astype(np.float32), name="hidden")
        shift = tf.Variable(numbers.normal(size=5).astype(np.float32), name="shift")
        out = tf.Variable(numbers.normal(size=(5, 1)).astype(np.float32), name="out")
    variables = [hidden, shift, out]

    @tf.function
    def replica_step(inputs: Any, wanted: Any) -> Any:
        ctx = tf.distribute.get_replica_context()
        own = slice(ctx.replica_id_in_sync_group, None, ctx.num_replicas_in_sync)
        with tf.GradientTape() as tape:
            found = tf.matmul(tf.tanh(tf.matmul(inputs[own], hidden) + shift), out)
            loss = tf.reduce_mean(tf.square(found - wanted[own]))
        return loss, ctx.all_reduce("MEAN", tape.gradient(loss, variables))

    loss, gradients = strategy.run(replica_step, args=tuple(tf.constant(part) for part in batch))
    return loss, dict(zip(("hidden", "shift", "out"), gradients, strict=True))
