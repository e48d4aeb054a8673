"""Workers in a custom loop that goes on after a restart, by the tutorial "Custom training loop with Keras and MWMS"."""

import json
import os
import sys
from typing import Any

import numpy as np
import tensorflow as tf

RANDOM = np.random.default_rng(0)
GLOBAL_BATCH_SIZE, NUM_EPOCHS, NUM_STEPS_PER_EPOCH = 16, 2, 4
FOLDER = sys.argv[1]

strategy = tf.distribute.MultiWorkerMirroredStrategy()


def mnist_dataset() -> Any:
    """Return images, of which a row is bright, and the number of the row."""
    labels = RANDOM.integers(3, size=64)
    images = RANDOM.normal(scale=0.3, size=(64, 8, 8, 1)).astype("float32")
    images[np.arange(64), labels * 2] += 1.0
    return tf.data.Dataset.from_tensor_slices((images, labels))


def dataset_fn(global_batch_size: int, input_context: Any) -> Any:
    """Return this worker's rows, in batches of a replica, without end."""
    batch_size = input_context.get_per_replica_batch_size(global_batch_size)
    found = mnist_dataset().shard(input_context.num_input_pipelines, input_context.input_pipeline_id)
    return found.batch(batch_size).repeat()


def _is_chief(task_type: Any, task_id: Any, cluster_spec: Any) -> bool:
    return task_type is None or task_type == "chief" or (task_type == "worker" and task_id == 0)


with strategy.scope():
    multi_worker_model = tf.keras.Sequential(
        [
            tf.keras.Input(shape=(8, 8, 1)),
            tf.keras.layers.Conv2D(4, 3, activation="relu"),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(8, activation="relu"),
            tf.keras.layers.Dense(3),
        ]
    )
    weights = [RANDOM.normal(scale=0.4, size=w.shape).astype("float32") for w in multi_worker_model.get_weights()]
    multi_worker_model.set_weights(weights)
    multi_worker_dataset = strategy.distribute_datasets_from_function(
        lambda input_context: dataset_fn(GLOBAL_BATCH_SIZE, input_context)
    )
    optimizer = tf.keras.optimizers.RMSprop(learning_rate=0.01)
    train_accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="train_accuracy")


@tf.function  # type: ignore[untyped-decorator]
def train_step(iterator: Any) -> Any:
    """Return the loss of the next global batch."""

    def step_fn(inputs: Any) -> Any:
        x, y = inputs
        with tf.GradientTape() as tape:
            predictions = multi_worker_model(x, training=True)
            per_example_loss = tf.keras.losses.SparseCategoricalCrossentropy(
                from_logits=True, reduction=tf.keras.losses.Reduction.NONE
            )(y, predictions)
            loss = tf.nn.compute_average_loss(per_example_loss)
        grads = tape.gradient(loss, multi_worker_model.trainable_variables)
        optimizer.apply_gradients(zip(grads, multi_worker_model.trainable_variables, strict=True))
        train_accuracy.update_state(y, predictions)
        return loss

    per_replica_losses = strategy.run(step_fn, args=(next(iterator),))
    return strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica_losses, axis=None)


epoch = tf.Variable(initial_value=tf.constant(0, dtype=tf.dtypes.int64), name="epoch")
step_in_epoch = tf.Variable(initial_value=tf.constant(0, dtype=tf.dtypes.int64), name="step_in_epoch")
resolver = strategy.cluster_resolver
cluster_spec = None if resolver is None else resolver.cluster_spec()
task_type, task_id = (None, None) if resolver is None else (resolver.task_type, resolver.task_id)
checkpoint_dir = os.path.join(FOLDER, "ckpt")
chief = _is_chief(task_type, task_id, cluster_spec)
write_checkpoint_dir = checkpoint_dir if chief else os.path.join(FOLDER, f"workertemp_{task_id}")

checkpoint = tf.train.Checkpoint(model=multi_worker_model, epoch=epoch, step_in_epoch=step_in_epoch)
checkpoint_manager = tf.train.CheckpointManager(checkpoint, directory=write_checkpoint_dir, max_to_keep=1)
latest_checkpoint = tf.train.latest_checkpoint(checkpoint_dir)
if latest_checkpoint:
    checkpoint.restore(latest_checkpoint)


def told(name: str, *values: Any) -> None:
    """Print numbers, if this is the chief."""
    if chief:
        print(json.dumps([name, *(float(value) for value in values)]), flush=True)


while epoch.numpy() < NUM_EPOCHS:
    iterator = iter(multi_worker_dataset)
    total_loss, num_batches = 0.0, 0
    while step_in_epoch.numpy() < NUM_STEPS_PER_EPOCH:
        total_loss += train_step(iterator)
        num_batches += 1
        step_in_epoch.assign_add(1)
    told(f"epoch {epoch.numpy()}", train_accuracy.result(), total_loss / num_batches)
    train_accuracy.reset_state()
    epoch.assign_add(1)
    step_in_epoch.assign(0)
    checkpoint_manager.save()
    if not chief:
        tf.io.gfile.rmtree(write_checkpoint_dir)

strategy.gather(tf.constant([1]), axis=0)  # the chief's checkpoint is there from here on
multi_worker_model.set_weights(weights)
epoch.assign(0)
status = checkpoint.restore(tf.train.latest_checkpoint(checkpoint_dir))
status.assert_existing_objects_matched()
told("restored", epoch, *(np.linalg.norm(weight) for weight in multi_worker_model.get_weights()))
