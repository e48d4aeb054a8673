"""``tf.random.Generator`` draws TensorFlow 2.21's own numbers, and a stream of its own for each replica."""

from __future__ import annotations

import numpy as np
import pytest

import collshim.tensorflow as tf
from tests.adapters.tensorflow.conftest import mirrored


def test_a_seed_gives_tensorflows_numbers() -> None:
    generator = tf.random.Generator.from_seed(1234)
    drawn = generator.normal([3]).numpy()
    assert np.allclose(drawn, [0.9356609, 1.0854305, -0.93788373], atol=1e-6)
    assert np.allclose(generator.uniform([2]).numpy(), [0.31073415, 0.3681823], atol=1e-7)
    assert generator.uniform([2], minval=0, maxval=10, dtype=tf.int32).numpy().tolist() == [2, 8]
    assert generator.state.numpy().tolist() == [3026, 0, 0]


def test_stateless_numbers_are_tensorflows() -> None:
    assert np.allclose(tf.random.stateless_uniform([2], seed=[1, 2]).numpy(), [0.8440604, 0.19204533])
    assert np.allclose(tf.random.stateless_normal([2], seed=[1, 2]).numpy(), [0.5441101, 0.2073803])
    drawn = tf.random.stateless_uniform([2], seed=[1, 2], minval=0, maxval=5, dtype=tf.int32)
    assert drawn.numpy().tolist() == [0, 4]


def test_each_replica_has_its_own_stream() -> None:
    strategy = mirrored(2)
    with strategy.scope():
        generator = tf.random.Generator.from_seed(1)
    first, second = strategy.run(lambda: generator.uniform_full_int([3], dtype=tf.int32)).values
    assert first.numpy().tolist() == [-501376537, -839581276, -547526676]
    assert second.numpy().tolist() == [-544000158, 587216725, 655049991]


def test_replicas_take_turns_with_a_generator_from_outside() -> None:
    generator = tf.random.Generator.from_seed(1)
    first, second = mirrored(2).run(lambda: generator.normal([2])).values
    assert np.allclose(first.numpy(), [0.43842274, -0.53439844])
    assert np.allclose(second.numpy(), [1.6307176, 0.00784778], atol=1e-6)


def test_generators_are_reset_skipped_and_split() -> None:
    generator = tf.random.Generator.from_seed(1)
    before = generator.normal([2]).numpy()
    generator.reset_from_seed(1)
    assert (generator.normal([2]).numpy() == before).all()
    generator.reset([5, 6, 7])
    generator.skip(10)
    assert generator.state.numpy().tolist() == [2565, 6, 7]
    generator.reset_from_key_counter(9, [0, 0])
    assert int(generator.key) == 9
    parts = tf.random.Generator.from_seed(1234).split(2)
    assert np.allclose(parts[0].normal([2]).numpy(), [0.22507924, -0.9732417], atol=1e-6)
    seeds = tf.random.Generator.from_key_counter(3, [1, 2], "philox").make_seeds(2)
    assert seeds.shape == (2, 2)
    assert seeds.numpy()[1].tolist() == [0, 0]


def test_other_algorithms_and_half_a_range_are_refused() -> None:
    with pytest.raises(ValueError, match="Argument `alg` got unsupported value 'threefry'"):
        tf.random.Generator.from_seed(1, alg="threefry")
    with pytest.raises(ValueError, match="minval and maxval must be both `None` or both non-`None`"):
        tf.random.Generator.from_seed(1).uniform([2], dtype=tf.int32)
    with pytest.raises(AssertionError):
        tf.random.Generator()


def test_the_global_generator_can_be_set() -> None:
    tf.random.set_global_generator(tf.random.Generator.from_seed(5))
    assert np.allclose(tf.random.experimental.get_global_generator().normal([2]).numpy(), [1.0278524, 0.27974114])
