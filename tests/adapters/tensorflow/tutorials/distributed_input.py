"""Datasets of a strategy, by the calls of the tutorial "Distributed input"."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

GLOBAL_BATCH_SIZE = 8


def told(name: str, value: Any) -> None:
    """Print numbers, those of all replicas in their order."""
    parts = mirrored_strategy.experimental_local_results(value)
    print(json.dumps([name, *(float(one) for part in parts for one in np.ravel(part.numpy()))]), flush=True)


mirrored_strategy = tf.distribute.MirroredStrategy()
replicas = mirrored_strategy.num_replicas_in_sync
numbers = np.arange(24, dtype="float32")

# A dataset that is batched globally.
dataset = tf.data.Dataset.from_tensor_slices((numbers[:, None], numbers[::-1, None])).batch(GLOBAL_BATCH_SIZE)
dist_dataset = mirrored_strategy.experimental_distribute_dataset(dataset)
told("first", next(iter(dist_dataset))[0])
print(
    json.dumps(["spec", replicas == 1 or repr(dist_dataset.element_spec[0]).startswith("PerReplicaSpec(TensorSpec(")])
)

# One that is not sharded, with options.
options = tf.data.Options()
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
told("options", next(iter(mirrored_strategy.experimental_distribute_dataset(dataset.with_options(options))))[1])


def dataset_fn(input_context: Any) -> Any:
    """Return this process's rows, in batches of a replica."""
    batch_size = input_context.get_per_replica_batch_size(GLOBAL_BATCH_SIZE)
    found = tf.data.Dataset.from_tensor_slices(numbers[:, None])
    found = found.shard(input_context.num_input_pipelines, input_context.input_pipeline_id)
    return found.batch(batch_size).prefetch(2)


from_function = mirrored_strategy.distribute_datasets_from_function(
    dataset_fn, tf.distribute.InputOptions(experimental_fetch_to_device=False)
)
told("from a function", next(iter(from_function)))

# Training, by a loop over the dataset, and over its iterator with a known and an unknown number of steps.
with mirrored_strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer="ones")])
    optimizer = tf.keras.optimizers.SGD(1e-4)


def train_step(inputs: Any) -> Any:
    """Train one replica on its rows."""
    features, labels = inputs
    with tf.GradientTape() as tape:
        losses = tf.reduce_sum(tf.square(model(features, training=True) - labels), axis=1)
        loss = tf.nn.compute_average_loss(losses, global_batch_size=GLOBAL_BATCH_SIZE)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


@tf.function(input_signature=[dist_dataset.element_spec])  # type: ignore[untyped-decorator]
def train_function(per_replica_inputs: Any) -> Any:
    """Return the replicas' shares of the loss."""
    return mirrored_strategy.run(train_step, args=(per_replica_inputs,))


def total(per_replica: Any) -> Any:
    """Return the sum over replicas."""
    return mirrored_strategy.reduce("SUM", per_replica, axis=None)


for dist_inputs in dist_dataset:
    told("loop", total(train_function(dist_inputs)))
iterator = iter(dist_dataset)
for _ in range(2):
    told("iterator", total(train_function(next(iterator))))
iterator = iter(dist_dataset)
optional_data = iterator.get_next_as_optional()
while optional_data.has_value():
    told("optional", total(train_function(optional_data.get_value())))
    optional_data = iterator.get_next_as_optional()


# Values from a function, and tensors from a generator.
def value_fn(ctx: Any) -> Any:
    """Return a number for each replica; together they are 1."""
    return tf.constant(1.0 / ctx.num_replicas_in_sync)


distributed_values = mirrored_strategy.experimental_distribute_values_from_function(value_fn)
told("values", total(mirrored_strategy.run(lambda value: value * 2.0, args=(distributed_values,))))


def input_gen() -> Iterator[Any]:
    """Yield rows without end."""
    while True:
        yield numbers[:4]


generated = tf.data.Dataset.from_generator(input_gen, output_types=(tf.float32), output_shapes=tf.TensorShape([4]))
told("generated", next(iter(mirrored_strategy.experimental_distribute_dataset(generated))))
