"""``Dataset.split``, and functions for ``Dataset.batch``: as in MindSpore 2.10.0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from collshim import mindspore as ms
from collshim.mindspore import dataset as ds

pytestmark = pytest.mark.unranked


def ten(**more: Any) -> Any:
    return ds.NumpySlicesDataset(np.arange(10), ["a"], **({"shuffle": False} | more))


def rows(dataset: Any, epochs: int = 1) -> Any:
    rows = dataset.create_tuple_iterator(num_epochs=epochs, output_numpy=True)
    found = [[row[0].tolist() for row in rows] for _ in range(epochs)]
    return found[0] if epochs == 1 else found


@pytest.mark.parametrize(
    ("length", "sizes", "counts"),
    [
        (10, [6, 4], [6, 4]),
        (10, [0.6, 0.4], [6, 4]),
        (10, [0.33, 0.33, 0.34], [4, 3, 3]),
        (11, [0.25, 0.25, 0.5], [2, 3, 6]),
        (7, [0.5, 0.5], [3, 4]),
        (5, [0.5, 0.3, 0.2], [2, 2, 1]),
    ],
)
def test_split_divides_rows_in_order(length: int, sizes: Any, counts: list[int]) -> None:
    whole = ds.NumpySlicesDataset(np.arange(length), ["a"], shuffle=False)
    parts = whole.split(sizes, randomize=False)
    assert [part.get_dataset_size() for part in parts] == [len(rows(part)) for part in parts] == counts
    assert [row for part in parts for row in rows(part)] == list(range(length))
    assert {type(part) for part in parts} == {ds.NumpySlicesDataset}


def test_split_with_a_seed_shuffles_once_in_the_order_of_mindspore() -> None:
    ms.set_seed(3)
    first, second = ten().split([6, 4])
    assert rows(first, 2) == [[3, 1, 8, 5, 2, 6]] * 2
    assert rows(second, 2) == [[9, 7, 0, 4]] * 2
    shuffled = ten(shuffle=True).split([6, 4])
    assert [rows(part, 2) for part in shuffled] == [
        [[5, 1, 0, 6, 8, 9], [8, 7, 0, 5, 2, 1]],
        [[4, 7, 3, 2], [9, 4, 3, 6]],
    ]
    kept = ten(shuffle=True).split([6, 4], randomize=False)
    assert rows(kept[0], 2) == [[3, 1, 8, 5, 2, 6], [3, 7, 2, 8, 6, 5]]


def test_split_keeps_a_sampler() -> None:
    assert list(map(rows, ten(shuffle=None, sampler=[3, 1, 5, 7]).split([3, 1], randomize=False))) == [[3, 1, 5], [7]]


def test_split_divides_rows_of_later_steps() -> None:
    assert list(map(rows, ten().map(lambda a: a + 1).split([7, 3], randomize=False))) == [
        [1, 2, 3, 4, 5, 6, 7],
        [8, 9, 10],
    ]
    assert list(map(rows, ten().batch(5).split([1, 1], randomize=False))) == [[[0, 1, 2, 3, 4]], [[5, 6, 7, 8, 9]]]
    first, second = ten().map(lambda a: a).split([0.5, 0.5])
    assert sorted(rows(first) + rows(second)) == list(range(10))
    before, after = rows(first, 2)
    assert before == after


@pytest.mark.parametrize(
    ("sizes", "error"),
    [
        ([6, 5], RuntimeError),
        ([0.6, 0.3], ValueError),
        ([0.6, 4], ValueError),
        ([], ValueError),
        ((6, 4), TypeError),
        ([0, 10], ValueError),
        ([1.2, -0.2], ValueError),
        ([0.99, 0.01], RuntimeError),
    ],
)
def test_split_refuses_other_sizes(sizes: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"size|fraction"):
        ten().split(sizes)


def test_split_refuses_shards_and_numbers_for_randomize() -> None:
    with pytest.raises(RuntimeError, match="should not be sharded before"):
        ten(num_shards=2, shard_id=0).split([3, 2])
    with pytest.raises(TypeError, match="Argument randomize with value 3"):
        ten().split([5, 5], 3)


@pytest.mark.parametrize(
    "change", [lambda a, info: ([x + 1 for x in a],), lambda a, info: [x + 1 for x in a], lambda a, _: np.stack(a) + 1]
)
def test_per_batch_map_replaces_values(change: Any) -> None:
    assert rows(ten().batch(4, per_batch_map=change)) == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10]]
    assert rows(ten().batch(4, True, per_batch_map=change)) == [[1, 2, 3, 4], [5, 6, 7, 8]]


def test_functions_learn_the_numbers_of_batches_and_epochs() -> None:
    seen = []

    def change(a: Any, info: Any) -> Any:
        seen.append((type(a), len(a), info.get_batch_num(), info.get_epoch_num()))
        return (a,)

    rows(ten().batch(5, per_batch_map=change), 2)
    assert seen == [(list, 5, 0, 0), (list, 5, 1, 0), (list, 5, 0, 1), (list, 5, 1, 1)]
    growing = ten().batch(lambda info: info.get_batch_num() + 1)
    assert rows(growing) == [[0], [1, 2], [3, 4, 5], [6, 7, 8, 9]]
    assert (growing.get_dataset_size(), growing.get_batch_size()) == (4, -1)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"input_columns": ["b"]}, {"a": [0, 1], "b": [0.0, 2.0]}),
        ({"input_columns": "b", "output_columns": "c"}, {"a": [0, 1], "c": [0.0, 2.0]}),
        ({"input_columns": ["b"], "output_columns": ["c", "d"]}, {"c": [0.0, 2.0], "d": [0.0, 3.0], "a": [0, 1]}),
    ],
)
def test_per_batch_map_takes_and_returns_columns(columns: Any, expected: Any) -> None:
    def change(b: Any, info: Any) -> Any:
        both = [x * 2 for x in b], [x * 3 for x in b]
        return both if len(columns.get("output_columns", "")) == 2 else both[:1]

    source = ds.NumpySlicesDataset((np.arange(2), np.arange(2.0)), ["a", "b"], shuffle=False)
    found = source.batch(2, per_batch_map=change, **columns)
    assert found.get_col_names() == list(expected)
    [row] = found.create_dict_iterator(num_epochs=1, output_numpy=True)
    assert {name: values.tolist() for name, values in row.items()} == expected


@pytest.mark.parametrize(
    "change", [lambda a, _: (a[:1],), lambda a, _: (a, a), lambda *_: (7,), lambda a, _: ([np.zeros(2), np.zeros(3)],)]
)
def test_per_batch_map_must_return_as_many_rows_and_columns(change: Any) -> None:
    with pytest.raises(RuntimeError, match="atch"):
        rows(ten().batch(2, per_batch_map=change))


def test_functions_of_batch_have_the_right_parameters() -> None:
    with pytest.raises(ValueError, match="a list for each of input_columns"):
        ten().batch(2, per_batch_map=lambda a, b, info: (a,), input_columns=["a"])
    with pytest.raises(ValueError, match="should take one parameter"):
        ten().batch(lambda: 2)
    with pytest.raises(ValueError, match="only with per_batch_map"):
        ten().batch(2, input_columns=["a"])


@pytest.mark.parametrize("size", [0, "a"])
def test_a_function_for_the_size_returns_a_positive_integer(size: Any) -> None:
    with pytest.raises(RuntimeError, match="should return a positive integer"):
        rows(ten().batch(lambda info: size))


def test_apply_calls_a_function() -> None:
    assert ten().apply(lambda dataset: dataset.batch(5)).get_dataset_size() == 2
    for function in (3, lambda dataset: 3):
        with pytest.raises(TypeError, match="function that returns a dataset"):
            ten().apply(function)


LENGTHS = ds.GeneratorDataset([np.arange(length) for length in (1, 3, 2)], ["a"], shuffle=False)


@pytest.mark.parametrize(
    ("pad_info", "expected"),
    [
        ({}, [[[0, 0, 0], [0, 1, 2]], [[0, 1]]]),
        ({"a": (None, -1)}, [[[0, -1, -1], [0, 1, 2]], [[0, 1]]]),
        ({"a": ([4], -1)}, [[[0, -1, -1, -1], [0, 1, 2, -1]], [[0, 1, -1, -1]]]),
        ({"a": ([2], -1)}, [[[0, -1], [0, 1]], [[0, 1]]]),
        ({"a": ([None], None)}, [[[0, 0, 0], [0, 1, 2]], [[0, 1]]]),
    ],
)
def test_padded_batch_pads_to_one_shape(pad_info: Any, expected: Any) -> None:
    assert rows(LENGTHS.padded_batch(2, pad_info=pad_info)) == expected
    assert rows(LENGTHS.padded_batch(2, True, pad_info=pad_info)) == expected[:1]


@pytest.mark.parametrize(
    ("pad_info", "error"),
    [(None, RuntimeError), (3, TypeError), ({"z": (None, 0)}, RuntimeError), ({"a": ([None, None], 0)}, RuntimeError)],
)
def test_padded_batch_refuses_what_does_not_fit(pad_info: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"pad|atch|column"):
        rows(LENGTHS.padded_batch(2, pad_info=pad_info))
