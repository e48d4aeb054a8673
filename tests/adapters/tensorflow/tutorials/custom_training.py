"""A custom training loop with checkpoints: the calls of the tutorial "Custom training with tf.distribute.Strategy"."""

import json
import os
import sys
from typing import Any

import numpy as np
import tensorflow as tf

RANDOM = np.random.default_rng(0)
CLASSES, EPOCHS, GLOBAL_BATCH_SIZE = 3, 2, 16
FOLDER = sys.argv[1]


def arrays(count: int) -> tuple[Any, Any]:
    """Return images, of which a row is bright, and the number of the row."""
    labels = RANDOM.integers(CLASSES, size=count)
    images = RANDOM.normal(scale=0.3, size=(count, 8, 8))
    images[np.arange(count), labels * 2] += 1.0
    return images.astype("float32")[..., None], labels.astype("int32")


def create_model() -> Any:
    """Return a network whose layers get their weights later."""
    regularizer = tf.keras.regularizers.L2(1e-3)
    return tf.keras.Sequential(
        [
            tf.keras.layers.Conv2D(4, 3, activation="relu", kernel_regularizer=regularizer),
            tf.keras.layers.MaxPooling2D(),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(8, activation="relu", kernel_regularizer=regularizer),
            tf.keras.layers.Dense(CLASSES, kernel_regularizer=regularizer),
        ]
    )


def told(name: str, *values: Any) -> None:
    """Print numbers."""
    print(json.dumps([name, *(float(value) for value in values)]), flush=True)


(train_images, train_labels), (test_images, test_labels) = arrays(96), arrays(40)
strategy = tf.distribute.MirroredStrategy()
BUFFER_SIZE = len(train_images)
train_dataset = tf.data.Dataset.from_tensor_slices((train_images, train_labels)).batch(GLOBAL_BATCH_SIZE)
test_dataset = tf.data.Dataset.from_tensor_slices((test_images, test_labels)).batch(GLOBAL_BATCH_SIZE)
train_dist_dataset = strategy.experimental_distribute_dataset(train_dataset)
test_dist_dataset = strategy.experimental_distribute_dataset(test_dataset)

with strategy.scope():
    loss_object = tf.keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, reduction=tf.keras.losses.Reduction.NONE
    )

    def compute_loss(labels: Any, predictions: Any, model_losses: Any) -> Any:
        """Return this replica's share of the loss of a batch."""
        loss = tf.nn.compute_average_loss(loss_object(labels, predictions), global_batch_size=GLOBAL_BATCH_SIZE)
        if model_losses:
            loss += tf.nn.scale_regularization_loss(tf.add_n(model_losses))
        return loss

    test_loss = tf.keras.metrics.Mean(name="test_loss")
    train_accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="train_accuracy")
    test_accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="test_accuracy")
    model = create_model()
    model.build((None, 8, 8, 1))
    model.set_weights([RANDOM.normal(scale=0.4, size=w.shape).astype("float32") for w in model.get_weights()])
    optimizer = tf.keras.optimizers.Adam(learning_rate=0.01)
    checkpoint = tf.train.Checkpoint(optimizer=optimizer, model=model)


def train_step(inputs: Any) -> Any:
    """Train one replica on its rows."""
    images, labels = inputs
    with tf.GradientTape() as tape:
        predictions = model(images, training=True)
        loss = compute_loss(labels, predictions, model.losses)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    train_accuracy.update_state(labels, predictions)
    return loss


def test_step(inputs: Any) -> None:
    """Count one replica's rows."""
    images, labels = inputs
    predictions = model(images, training=False)
    test_loss.update_state(loss_object(labels, predictions))
    test_accuracy.update_state(labels, predictions)


@tf.function  # type: ignore[untyped-decorator]
def distributed_train_step(dataset_inputs: Any) -> Any:
    """Return the loss of a global batch."""
    per_replica_losses = strategy.run(train_step, args=(dataset_inputs,))
    return strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica_losses, axis=None)


@tf.function  # type: ignore[untyped-decorator]
def distributed_test_step(dataset_inputs: Any) -> Any:
    """Count a global batch."""
    return strategy.run(test_step, args=(dataset_inputs,))


for epoch in range(EPOCHS):
    total_loss, num_batches = 0.0, 0
    for x in train_dist_dataset:
        total_loss += distributed_train_step(x)
        num_batches += 1
    for x in test_dist_dataset:
        distributed_test_step(x)
    checkpoint.save(os.path.join(FOLDER, "ckpt"))
    told(
        f"epoch {epoch + 1}",
        total_loss / num_batches,
        train_accuracy.result(),
        test_loss.result(),
        test_accuracy.result(),
    )
    for metric in (test_loss, train_accuracy, test_accuracy):
        metric.reset_state()

# The latest checkpoint, without a strategy.
eval_accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="eval_accuracy")
new_model = create_model()
new_optimizer = tf.keras.optimizers.Adam()


@tf.function  # type: ignore[untyped-decorator]
def eval_step(images: Any, labels: Any) -> None:
    """Count a batch."""
    eval_accuracy(labels, new_model(images, training=False))


new_checkpoint = tf.train.Checkpoint(optimizer=new_optimizer, model=new_model)
status = new_checkpoint.restore(tf.train.latest_checkpoint(FOLDER))
for images, labels in test_dataset:
    eval_step(images, labels)
told("restored", eval_accuracy.result())
told("norms", *(np.linalg.norm(weight) for weight in new_model.get_weights()))

# Iterators, of which an epoch takes a few batches.
for _ in range(EPOCHS):
    total_loss, train_iter = 0.0, iter(train_dist_dataset)
    for _ in range(3):
        total_loss += distributed_train_step(next(train_iter))
    average_train_loss = total_loss / tf.cast(3, dtype=tf.float32)
    told("iterator", average_train_loss, train_accuracy.result())
    train_accuracy.reset_state()


@tf.function  # type: ignore[untyped-decorator]
def distributed_train_epoch(dataset: Any) -> Any:
    """Return the mean loss of all batches."""
    total_loss, num_batches = 0.0, 0
    for x in dataset:
        per_replica_losses = strategy.run(train_step, args=(x,))
        total_loss += strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica_losses, axis=None)
        num_batches += 1
    return total_loss / tf.cast(num_batches, dtype=tf.float32)


told("in a function", distributed_train_epoch(train_dist_dataset), train_accuracy.result())
