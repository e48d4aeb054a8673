"""A model trained by fit: the calls of the tutorials "Distributed training with Keras" and "Save and load a model"."""

import json
import os
import sys
from typing import Any

import numpy as np
import tensorflow as tf

RANDOM = np.random.default_rng(0)
CLASSES, BATCH_SIZE = 3, 16
FOLDER = sys.argv[1]


def arrays(count: int) -> tuple[Any, Any]:
    """Return images of bytes, of which a row is bright, and the number of the row."""
    labels = RANDOM.integers(CLASSES, size=count)
    images = RANDOM.uniform(0, 80, size=(count, 8, 8, 1))
    images[np.arange(count), labels * 2] += 150
    return images.astype("uint8"), labels.astype("int64")


def told(name: str, *values: Any) -> None:
    """Print numbers."""
    print(json.dumps([name, *(float(value) for value in values)]), flush=True)


strategy = tf.distribute.MirroredStrategy()
mnist_train, mnist_test = (tf.data.Dataset.from_tensor_slices(arrays(count)) for count in (96, 40))


def scale(image: Any, label: Any) -> tuple[Any, Any]:
    """Return an image with numbers up to 1."""
    return tf.cast(image, tf.float32) / 255, label


train_dataset = mnist_train.map(scale).cache().batch(BATCH_SIZE)
eval_dataset = mnist_test.map(scale).batch(BATCH_SIZE)

with strategy.scope():
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Conv2D(4, 3, activation="relu", input_shape=(8, 8, 1)),  # pyright: ignore[reportCallIssue]
            tf.keras.layers.MaxPooling2D(),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(8, activation="relu"),
            tf.keras.layers.Dense(CLASSES),
        ]
    )
    model.set_weights([RANDOM.normal(scale=0.4, size=w.shape).astype("float32") for w in model.get_weights()])
    model.compile(
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        optimizer=tf.keras.optimizers.Adam(learning_rate=0.01),
        metrics=["accuracy"],
    )


def decay(epoch: int) -> float:
    """Return the learning rate of an epoch."""
    return 1e-2 if epoch < 2 else 1e-3


class PrintLR(tf.keras.callbacks.Callback):  # type: ignore[misc]
    """Prints the learning rate after each epoch."""

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Print it."""
        told(f"rate {epoch}", model.optimizer.learning_rate.numpy())


checkpoint_prefix = os.path.join(FOLDER, "ckpt_{epoch}.weights.h5")
callbacks = [
    tf.keras.callbacks.ModelCheckpoint(filepath=checkpoint_prefix, save_weights_only=True),
    tf.keras.callbacks.LearningRateScheduler(decay),
    PrintLR(),
]
history = model.fit(train_dataset, epochs=3, callbacks=callbacks, validation_data=eval_dataset, verbose=0).history
for name in ("loss", "accuracy", "val_loss", "val_accuracy"):
    told(name, *history[name])

model.load_weights(os.path.join(FOLDER, "ckpt_1.weights.h5"))
told("first epoch", *model.evaluate(eval_dataset, verbose=0))
model.load_weights(os.path.join(FOLDER, "ckpt_3.weights.h5"))
told("last epoch", *model.evaluate(eval_dataset, verbose=0))
told("predicted", *np.ravel(model.predict(eval_dataset, verbose=0)))

path = os.path.join(FOLDER, "my_model.keras")
model.save(path)
unreplicated_model = tf.keras.models.load_model(path)
told("without a strategy", *unreplicated_model.evaluate(eval_dataset, verbose=0))
with strategy.scope():
    replicated_model = tf.keras.models.load_model(path)
    replicated_model.compile(
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        optimizer=tf.keras.optimizers.Adam(),
        metrics=["accuracy"],
    )
told("with the strategy", *replicated_model.evaluate(eval_dataset, verbose=0))
