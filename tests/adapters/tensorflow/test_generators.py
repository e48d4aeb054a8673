"""``tf.random.Generator`` draws TensorFlow 2.21's own numbers, and a stream of its own for each replica."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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


@pytest.mark.parametrize(
    ("dtype", "uniform", "truncated"),
    [
        (tf.float16, [0.16015625, 0.2138671875, 0.2294921875], [0.438, -0.534, -0.0771]),
        (tf.bfloat16, [0.28125, 0.7109375, 0.8359375], [0.4375, -0.53515625, -0.0771484375]),
        (tf.float32, [0.78749514, 0.39065111, 0.29263055], [0.43842274, -0.53439844, -0.07710262]),
        (
            tf.float64,
            [0.2999614354048876, 0.3410444613400274, 0.664834327169197],
            [1.30477554, -0.84009732, -0.80699818],
        ),
    ],
)
def test_every_dtype_has_tensorflows_numbers(dtype: tf.DType, uniform: list[float], truncated: list[float]) -> None:
    def drawn(method: str) -> list[float]:
        numbers: list[float] = getattr(tf.random.Generator.from_seed(1), method)([3], dtype=dtype).double().tolist()
        return numbers

    assert drawn("uniform") == pytest.approx(uniform, abs=1e-7)
    assert drawn("truncated_normal") == pytest.approx(truncated, abs=1e-3)


def test_numbers_beyond_the_limits_are_left_out() -> None:
    drawn = tf.random.Generator.from_seed(1).truncated_normal([9]).numpy()
    assert np.allclose(drawn[3:], [1.5658046, 1.6272374, 0.04138071, -0.10412996, 0.79326314, 1.63071764], atol=1e-6)
    assert np.abs(tf.random.Generator.from_seed(1).truncated_normal([999]).numpy()).max() < 2
    assert tf.random.Generator.from_seed(1).truncated_normal([0]).shape == (0,)


def test_limits_may_be_tensors() -> None:
    found = tf.random.Generator.from_seed(1).uniform([2, 2], tf.constant([0.0, 1.0]), tf.constant([2.0, 3.0]))
    assert np.allclose(found.numpy(), [[1.57499, 1.7813], [0.58526, 2.98434]], atol=1e-5)


def test_outside_of_its_strategy_a_generator_advances_all_copies() -> None:
    strategy = mirrored(2)
    with strategy.scope():
        generator = tf.random.Generator.from_seed(1)
    assert np.allclose(generator.normal([2]).numpy(), [0.43842, -0.5344], atol=1e-5)
    assert [one.numpy().tolist() for one in generator.state.values] == [[513, 0, 0]] * 2
    assert generator.make_seeds().shape == (2, 1)
    assert [one.numpy().tolist() for one in generator.skip(1).values] == [[769, 0, 0]] * 2


def test_steps_wrap_as_64_bits() -> None:
    generator = tf.random.Generator.from_seed(1, alg="auto_select")
    assert (generator.algorithm, generator.split()[0].algorithm) == (3, 3)
    generator.reset_from_seed(1)
    generator.skip(-3)
    assert generator.state.numpy().tolist() == [-767, 0, 0]


@pytest.mark.parametrize(
    ("draw", "text"),
    [
        (lambda: tf.random.Generator.from_seed(1).uniform([1], 5, 5, tf.int32), "Need minval < maxval, got 5 >= 5"),
        (lambda: tf.random.Generator.from_seed(1).uniform([1], None, None, tf.int8), "dtype is int8"),
        (lambda: tf.random.Generator.from_seed(1).uniform_full_int([1], tf.float32), "dtype is float32"),
        (lambda: tf.random.Generator.from_seed(1).normal([-1]), "Dimension -1 must be >= 0"),
        (lambda: tf.random.stateless_uniform([1], [1, 2, 3]), r"seed must have shape \[2\], not \[3\]"),
        (lambda: tf.random.stateless_uniform([1], [1.0, 2.0]), "seed must be int32 or int64"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(draw: Callable[[], object], text: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        draw()


def test_states_have_three_words() -> None:
    with pytest.raises(ValueError, match="incompatible"):
        tf.random.Generator.from_state([[1, 2, 3]], "philox")


def test_seeds_for_stateless_functions_are_split_and_folded_as_in_tensorflow() -> None:
    assert tf.random.split([1, 2], 2).numpy().tolist() == [[1105988140, 1738052849], [-335576002, 370444179]]
    wide = tf.random.experimental.stateless_split(tf.constant([1, 2], tf.int64), 1)
    assert wide.numpy().tolist() == [[7464880146280614444, 1591045637757961278]]
    assert tf.random.fold_in([1, 2], 7).numpy().tolist() == [1105988140, 7]
    wide = tf.random.experimental.stateless_fold_in([1, 2], tf.constant(7, tf.int64))
    assert wide.numpy().tolist() == [7464880146280614444, 7]


def test_each_replica_folds_its_number_into_a_seed() -> None:
    def draw() -> Any:
        context = tf.distribute.get_replica_context()
        seed = tf.random.fold_in([1, 2], context.replica_id_in_sync_group)
        return tf.random.stateless_truncated_normal([2], seed)

    first, second = mirrored(2).run(draw).values
    assert (first.numpy() != second.numpy()).all()


def test_stateless_truncated_normal_numbers_are_tensorflows() -> None:
    drawn = tf.random.stateless_truncated_normal([3], [1, 2], 0.5, 2.0).numpy()
    assert np.allclose(drawn, [1.58822, 0.91476, 0.64713])
    drawn = tf.random.stateless_truncated_normal([3], [1, 2], tf.constant([1.0, 2.0, 3.0])).numpy()
    assert np.allclose(drawn, [1.54411, 2.20738, 3.07356])


def test_torchs_truncated_numbers_and_orders() -> None:
    drawn = tf.random.truncated_normal([2000], 5.0, 2.0).numpy()
    assert drawn.min() >= 1
    assert drawn.max() <= 9
    assert 1.6 < drawn.std() < 1.9
    assert (tf.random.truncated_normal([3], seed=1).numpy() == tf.random.truncated_normal([3], seed=1.0).numpy()).all()
    with pytest.raises(TypeError, match="dtype is int32, should be one of floats"):
        tf.random.truncated_normal([3], dtype=tf.int32)
    rows = tf.random.shuffle([[1, 2], [3, 4], [5, 6]]).numpy()
    assert sorted(rows.tolist()) == [[1, 2], [3, 4], [5, 6]]
    assert int(tf.random.shuffle(3)) == 3


def test_no_seed_makes_each_run_different() -> None:
    tf.random.set_seed(3)
    tf.random.set_seed(None)
    first = tf.random.normal([3]).numpy()
    tf.random.set_seed(None)
    assert (tf.random.normal([3]).numpy() != first).all()
