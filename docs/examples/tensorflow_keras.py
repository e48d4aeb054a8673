"""A convolutional network of tf.keras in a custom training loop: each replica takes its rows of every global batch.

    collshim run --as tensorflow -n 2 docs/examples/tensorflow_keras.py
    collshim run --as tensorflow -n 1 docs/examples/tensorflow_keras.py 2
    python docs/examples/tensorflow_keras.py

The first line has two processes, the second one process with two replicas, each a thread. The third runs it on
TensorFlow itself, with one replica, which prints the same losses to five digits.
"""

import sys
from typing import Any

import numpy as np
import tensorflow as tf

EPOCHS = 3
GLOBAL_BATCH = 16
CLASSES = 3
RANDOM = np.random.default_rng(0)


def striped(count: int) -> tuple[Any, Any]:
    """Return noisy images of 8 x 8 pixels; the class is the distance of the bright columns, minus two."""
    labels = RANDOM.integers(CLASSES, size=count)
    images = RANDOM.normal(scale=0.3, size=(count, 8, 8, 1))
    for image, label in zip(images, labels, strict=True):
        image[:, RANDOM.integers(2) :: 2 + label] += 1.0
    return images.astype("float32"), labels.astype("int32")


def network() -> Any:
    """Return the network, with the same weights on every replica and in every framework."""
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            tf.keras.Input((8, 8, 1)),
            layers.Conv2D(4, 3, activation="relu"),
            layers.MaxPooling2D(2),
            layers.Flatten(),
            layers.Dense(8, activation="relu"),
            layers.Dense(CLASSES),
        ]
    )
    model.set_weights([RANDOM.normal(scale=0.4, size=w.shape).astype("float32") for w in model.get_weights()])
    return model


class Training:
    """A network with its loss, optimizer and metrics; made in the strategy's scope."""

    def __init__(self, strategy: Any) -> None:
        self.strategy, self.network = strategy, network()
        self.optimizer = tf.keras.optimizers.Adam(0.02)
        self.each = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
        self.train_accuracy = tf.keras.metrics.SparseCategoricalAccuracy()
        self.test_loss = tf.keras.metrics.Mean()
        self.test_accuracy = tf.keras.metrics.SparseCategoricalAccuracy()

    def train_step(self, images: Any, labels: Any) -> Any:
        """Return this replica's share of the loss; the optimizer adds up the gradients of all replicas."""
        with tf.GradientTape() as tape:
            logits = self.network(images, training=True)
            loss = tf.nn.compute_average_loss(self.each(labels, logits), global_batch_size=GLOBAL_BATCH)
        gradients = tape.gradient(loss, self.network.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.network.trainable_variables, strict=True))
        self.train_accuracy.update_state(labels, logits)
        return loss

    def test_step(self, images: Any, labels: Any) -> None:
        """Count this replica's rows."""
        logits = self.network(images, training=False)
        self.test_loss.update_state(self.each(labels, logits))
        self.test_accuracy.update_state(labels, logits)

    @tf.function  # type: ignore[untyped-decorator]
    def distributed_train_step(self, batch: Any) -> Any:
        """Return the loss of a global batch."""
        return self.strategy.reduce("SUM", self.strategy.run(self.train_step, args=batch), axis=None)

    @tf.function  # type: ignore[untyped-decorator]
    def distributed_test_step(self, batch: Any) -> None:
        """Count the rows of a global batch."""
        self.strategy.run(self.test_step, args=batch)

    def results(self) -> list[float]:
        """Return the metrics since the last call; every worker must call, since the replicas' counts are added up."""
        metrics = (self.train_accuracy, self.test_loss, self.test_accuracy)
        found = [float(metric.result()) for metric in metrics]
        for metric in metrics:
            metric.reset_state()
        return found


def chosen_strategy() -> Any:
    """Return a strategy with the command line's number of replicas, each a thread, or with one in each process."""
    if len(sys.argv) > 1:
        return tf.distribute.MirroredStrategy([f"CPU:{place}" for place in range(int(sys.argv[1]))])
    return tf.distribute.MultiWorkerMirroredStrategy()


def main() -> None:
    """Train and test; the first worker prints a line for each epoch."""
    strategy = chosen_strategy()
    trained, tested = (
        strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices(part).batch(GLOBAL_BATCH))
        for part in (striped(96), striped(40))
    )
    with strategy.scope():
        training = Training(strategy)
    places = strategy.run(lambda: tf.distribute.get_replica_context().replica_id_in_sync_group)
    is_first = int(strategy.experimental_local_results(places)[0]) == 0
    for epoch in range(1, EPOCHS + 1):
        losses = [float(training.distributed_train_step(batch)) for batch in trained]
        for batch in tested:
            training.distributed_test_step(batch)
        told = "accuracy: {:.5f} test loss: {:.7f} test accuracy: {:.5f}".format(*training.results())
        if is_first:
            print(f"{epoch}/{EPOCHS} loss: {sum(losses) / len(losses):.7f} {told}", flush=True)
    if is_first:
        print(f"norms: {[float(np.linalg.norm(w)) for w in training.network.get_weights()]}", flush=True)


if __name__ == "__main__":
    main()
