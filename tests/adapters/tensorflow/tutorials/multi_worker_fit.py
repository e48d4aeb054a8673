"""Workers that train a model by fit, and save it, by the calls of the tutorial "Multi-worker training with Keras"."""

import json
import os
import sys
from typing import Any

import numpy as np
import tensorflow as tf

RANDOM = np.random.default_rng(0)
GLOBAL_BATCH_SIZE = 16
FOLDER = sys.argv[1]

strategy = tf.distribute.MultiWorkerMirroredStrategy()
tf_config = json.loads(os.environ.get("TF_CONFIG") or "{}")
resolver = strategy.cluster_resolver
task_type, task_id = (None, None) if resolver is None else (resolver.task_type, resolver.task_id)


def is_chief(task_type: Any, task_id: Any) -> bool:
    """Return whether this worker saves."""
    return task_type == "chief" or (task_type == "worker" and task_id == 0) or task_type is None


def write_filepath(filepath: str, task_type: Any, task_id: Any) -> str:
    """Return the path itself for the chief; for the others one in a folder that is deleted later."""
    dirpath, base = os.path.dirname(filepath), os.path.basename(filepath)
    if not is_chief(task_type, task_id):
        dirpath = os.path.join(dirpath, f"workertemp_{task_id}")
        tf.io.gfile.makedirs(dirpath)
    return os.path.join(dirpath, base)


def told(name: str, *values: Any) -> None:
    """Print numbers, if this is the chief."""
    if is_chief(task_type, task_id):
        print(json.dumps([name, *(float(value) for value in values)]), flush=True)


def mnist_dataset(batch_size: int) -> Any:
    """Return batches of images, of which a row is bright, without end."""
    labels = RANDOM.integers(3, size=64)
    images = RANDOM.normal(scale=0.3, size=(64, 8, 8)).astype("float32")
    images[np.arange(64), labels * 2] += 1.0
    return tf.data.Dataset.from_tensor_slices((images, labels)).repeat().batch(batch_size)


def build_and_compile_cnn_model() -> Any:
    """Return a network, with the same weights in every framework."""
    model = tf.keras.Sequential(
        [
            tf.keras.layers.InputLayer(shape=(8, 8)),
            tf.keras.layers.Reshape(target_shape=(8, 8, 1)),
            tf.keras.layers.Conv2D(4, 3, activation="relu"),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(8, activation="relu"),
            tf.keras.layers.Dense(3),
        ]
    )
    model.set_weights([RANDOM.normal(scale=0.4, size=w.shape).astype("float32") for w in model.get_weights()])
    model.compile(
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        optimizer=tf.keras.optimizers.SGD(learning_rate=0.02),
        metrics=["accuracy"],
    )
    return model


multi_worker_dataset = mnist_dataset(GLOBAL_BATCH_SIZE)
options = tf.data.Options()
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
multi_worker_dataset = multi_worker_dataset.with_options(options)
with strategy.scope():
    multi_worker_model = build_and_compile_cnn_model()

callbacks = [tf.keras.callbacks.BackupAndRestore(backup_dir=os.path.join(FOLDER, f"backup_{task_id}"))]
history = multi_worker_model.fit(multi_worker_dataset, epochs=3, steps_per_epoch=5, callbacks=callbacks, verbose=0)
for name in ("loss", "accuracy"):
    told(name, *history.history[name])

model_path = os.path.join(FOLDER, "keras-model.keras")
write_model_path = write_filepath(model_path, task_type, task_id)
multi_worker_model.save(write_model_path)
if not is_chief(task_type, task_id):
    tf.io.gfile.rmtree(os.path.dirname(write_model_path))
if is_chief(task_type, task_id):
    told("loaded", *tf.keras.models.load_model(model_path).evaluate(multi_worker_dataset, steps=4, verbose=0))

# A checkpoint, whose values every worker takes part in writing.
checkpoint = tf.train.Checkpoint(model=multi_worker_model)
write_checkpoint_dir = write_filepath(os.path.join(FOLDER, "ckpt"), task_type, task_id)
checkpoint_manager = tf.train.CheckpointManager(checkpoint, directory=write_checkpoint_dir, max_to_keep=1)
checkpoint_manager.save()
if not is_chief(task_type, task_id):
    tf.io.gfile.rmtree(write_checkpoint_dir)
strategy.gather(tf.constant([1]), axis=0)  # the chief's checkpoint is there from here on
multi_worker_model.set_weights([weight * 0 for weight in multi_worker_model.get_weights()])
checkpoint.restore(tf.train.latest_checkpoint(os.path.join(FOLDER, "ckpt")))
told("norms", *(np.linalg.norm(weight) for weight in multi_worker_model.get_weights()))
told("restored", *multi_worker_model.evaluate(multi_worker_dataset, steps=4, verbose=0))
