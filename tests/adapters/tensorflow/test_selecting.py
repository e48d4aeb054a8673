"""Datasets whose elements are selected, grouped or accumulated: as in TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import collshim.tensorflow as tf

pytestmark = pytest.mark.unranked

Dataset = tf.data.Dataset
GIVEN = [[0], [1, 2, 3, 4], [5, 6, 7], [7, 8, 9, 10, 11], [13, 14, 15, 16, 19, 20], [21, 22]]


def listed(dataset: Any) -> list[Any]:
    return [element.tolist() for element in dataset.as_numpy_iterator()]


def sequences() -> Any:
    return Dataset.from_generator(lambda: GIVEN, tf.int64, output_shapes=[None])


def length(element: Any) -> Any:
    return tf.shape(element)[0]


def test_unique_leaves_out_what_was_there() -> None:
    assert listed(Dataset.from_tensor_slices([1, 2, 1, 3, 2]).unique()) == [1, 2, 3]
    assert listed(Dataset.from_tensor_slices([[1, 2], [1, 2]]).unique()) == [[1, 2]]
    with pytest.raises(TypeError, match="should be int32, int64 or string"):
        listed(Dataset.from_tensor_slices([1.5]).unique())
    with pytest.raises(tf.errors.InvalidArgumentError, match="one component"):
        next(iter(Dataset.from_tensor_slices(([1], [1])).unique()))


def test_the_only_element_is_returned() -> None:
    assert Dataset.range(1).get_single_element().numpy() == 0
    for count in (0, 2):
        with pytest.raises(tf.errors.InvalidArgumentError, match="Dataset"):
            Dataset.range(count).get_single_element()


def test_scan_passes_a_state_on() -> None:
    zero = np.int64(0)
    sums = Dataset.range(5).scan(zero, lambda state, element: (state + element, state + element))
    assert listed(sums) == [0, 1, 3, 6, 10]
    assert len(sums) == 5
    assert sums.element_spec == tf.TensorSpec((), tf.int64)
    pair = Dataset.range(3).scan((zero, np.int64(1)), lambda state, _: ((state[1], state[0] + state[1]), state[1]))
    assert listed(pair) == [1, 1, 2]
    with pytest.raises(TypeError, match="should return a pair"):
        listed(Dataset.range(3).scan(zero, lambda state, element: element))


def test_windows_of_one_key_are_reduced() -> None:
    def parity(number: Any) -> Any:
        return number % 2

    def batched(key: Any, window: Any) -> Any:
        return window.batch(10)

    numbers = Dataset.range(10)
    assert listed(numbers.group_by_window(parity, batched, 3)) == [[0, 2, 4], [1, 3, 5], [6, 8], [7, 9]]
    growing = numbers.group_by_window(parity, batched, window_size_func=lambda key: key + 1)
    assert listed(growing) == [[0], [2], [1, 3], [4], [6], [5, 7], [8], [9]]
    both: Any = {"window_size": 3, "window_size_func": lambda key: 3}
    nothing: Any = {}
    for sizes in (nothing, both):
        with pytest.raises(ValueError, match="Exactly one of"):
            numbers.group_by_window(parity, batched, **sizes)
    with pytest.raises(ValueError, match="int64, but got int32"):
        listed(numbers.group_by_window(lambda number: tf.cast(number, tf.int32), batched, 3))


@pytest.mark.parametrize(
    ("bounds", "more", "expected"),
    [
        (
            [3, 5],
            {},
            [[[1, 2, 3, 4], [5, 6, 7, 0]], [[7, 8, 9, 10, 11, 0], [13, 14, 15, 16, 19, 20]], [[0, 0], [21, 22]]],
        ),
        (
            [4, 7],
            {"pad_to_bucket_boundary": True},
            [
                [[0, 0, 0], [5, 6, 7]],
                [[1, 2, 3, 4, 0, 0], [7, 8, 9, 10, 11, 0]],
                [[21, 22, 0]],
                [[13, 14, 15, 16, 19, 20]],
            ],
        ),
        (
            [4, 7],
            {"padding_values": tf.constant(-1, tf.int64)},
            [[[0, -1, -1], [5, 6, 7]], [[1, 2, 3, 4, -1], [7, 8, 9, 10, 11]], [[21, 22]], [[13, 14, 15, 16, 19, 20]]],
        ),
        ([4, 7], {"drop_remainder": True}, [[[0, 0, 0], [5, 6, 7]], [[1, 2, 3, 4, 0], [7, 8, 9, 10, 11]]]),
    ],
)
def test_similar_lengths_are_batched(bounds: list[int], more: Any, expected: Any) -> None:
    assert listed(sequences().bucket_by_sequence_length(length, bounds, [2, 2, 2], **more)) == expected


def test_buckets_need_no_padding_and_one_size_each() -> None:
    equal = Dataset.from_tensor_slices([[1, 2], [3, 4]]).bucket_by_sequence_length(length, [3], [2, 2], no_padding=True)
    assert listed(equal) == [[[1, 2], [3, 4]]]
    with pytest.raises(ValueError, match="bucket_batch_sizes"):
        sequences().bucket_by_sequence_length(length, [3, 5], [2, 2])
    with pytest.raises(tf.errors.InvalidArgumentError, match="longer than the last"):
        listed(sequences().bucket_by_sequence_length(length, [3], [2, 2], pad_to_bucket_boundary=True))


def test_elements_are_drawn_from_several_datasets() -> None:
    several = [Dataset.range(3), Dataset.range(10, 13)]
    drawn = Dataset.sample_from_datasets(several, seed=1)
    assert sorted(listed(drawn)) == [0, 1, 2, 10, 11, 12]
    assert listed(drawn) == listed(drawn)
    assert listed(Dataset.sample_from_datasets(several, weights=[1.0, 0.0])) == [0, 1, 2]
    short = [Dataset.range(1), Dataset.range(10, 100)]
    assert len(listed(Dataset.sample_from_datasets(short, seed=1, stop_on_empty_dataset=True))) < 91
    with pytest.raises(ValueError, match="should not be empty"):
        Dataset.sample_from_datasets([])
    with pytest.raises(ValueError, match="one for each dataset"):
        Dataset.sample_from_datasets(several, [1.0])


@pytest.mark.parametrize(
    ("choices", "stops", "expected"),
    [([0, 1, 1, 0], True, [0, 10, 11, 1]), ([1, 1, 1, 0], True, [10, 11]), ([1, 1, 1, 0], False, [10, 11, 0])],
)
def test_elements_are_chosen_from_several_datasets(choices: list[int], stops: bool, expected: list[int]) -> None:
    several, numbers = [Dataset.range(3), Dataset.range(10, 12)], tf.constant(choices, tf.int64)
    chosen = Dataset.choose_from_datasets(several, Dataset.from_tensor_slices(numbers), stops)
    assert listed(chosen) == expected


def test_choices_are_int64_and_in_range() -> None:
    with pytest.raises(TypeError, match="must be scalar int64"):
        listed(Dataset.choose_from_datasets([Dataset.range(1)], Dataset.from_tensor_slices([0])))
    with pytest.raises(tf.errors.InvalidArgumentError, match="number 1 was chosen"):
        listed(Dataset.choose_from_datasets([Dataset.range(1)], Dataset.range(1, 2)))


@pytest.mark.parametrize(
    "build",
    [
        lambda numbers: numbers.map(3),
        lambda numbers: numbers.filter(3),
        lambda numbers: numbers.flat_map(3),
        lambda numbers: numbers.interleave(3),
        lambda numbers: numbers.take_while(3),
        lambda numbers: numbers.scan(0, 3),
        lambda numbers: numbers.reduce(0, 3),
    ],
)
def test_what_is_no_function_is_refused_when_the_dataset_is_built(build: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match="must be a callable, but got 3"):
        build(Dataset.range(3))


@pytest.mark.parametrize("name", ["filter", "take_while"])
def test_predicates_return_booleans(name: str) -> None:
    with pytest.raises(ValueError, match="must return a boolean scalar"):
        listed(getattr(Dataset.range(3), name)(lambda number: number))
    assert listed(getattr(Dataset.range(3), name)(lambda number: True)) == [0, 1, 2]


@pytest.mark.parametrize("name", ["take", "skip", "repeat", "batch", "shuffle"])
def test_numbers_of_elements_are_whole(name: str) -> None:
    with pytest.raises(TypeError, match=r"Cannot convert 1.5"):
        getattr(Dataset.range(3), name)(1.5)


def test_datasets_of_other_dtypes_are_not_concatenated() -> None:
    with pytest.raises(TypeError, match="Incompatible dataset elements"):
        listed(Dataset.range(3).concatenate(Dataset.from_tensor_slices([1.0])))


def test_empty_datasets_are_described() -> None:
    assert Dataset.range(0).map(lambda number: number * 2).element_spec == tf.TensorSpec((), tf.int64)
    pairs = Dataset.range(0).map(lambda number: (tf.cast(number, tf.float32), {"a": number}))
    assert pairs.element_spec == (tf.TensorSpec((), tf.float32), {"a": tf.TensorSpec((), tf.int64)})
    assert len(Dataset.range(0).repeat().take(7)) == 0
