"""Samplers on top of each other, datasets whose sampler is replaced, and rows by index."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import collshim.mindspore.dataset as ds

pytestmark = pytest.mark.unranked


untyped: Any = ds  # calls that the types forbid are tested too


def rows(sampler: Any = None) -> ds.NumpySlicesDataset:
    shuffle = False if sampler is None else None
    return ds.NumpySlicesDataset({"y": np.arange(10)}, shuffle=shuffle, sampler=sampler)


def read(dataset: ds.Dataset) -> list[int]:
    return [int(row["y"]) for row in dataset.create_dict_iterator(num_epochs=1, output_numpy=True)]


def over(child: Any, sampler: Any) -> Any:
    sampler.add_child(child)
    return sampler


def test_a_dataset_has_rows_by_index() -> None:
    assert rows()[3] == (3,)
    assert rows(ds.DistributedSampler(4, 1, False))[2] == (9,)
    for index, error in ((10, RuntimeError), (-1, RuntimeError), ("a", TypeError)):
        with pytest.raises(error):
            rows()[index]  # type: ignore[index]
    with pytest.raises(TypeError):
        rows().batch(2)[0]  # type: ignore[index]


@pytest.mark.parametrize(
    ("sampler", "expected"),
    [
        (lambda: over(ds.SequentialSampler(2, 6), ds.DistributedSampler(2, 0, False)), [2, 4, 6]),
        (lambda: over(ds.SubsetSampler([5, 7, 9]), ds.SubsetSampler([1, 0])), [7, 5]),
        (lambda: over(ds.DistributedSampler(2, 1, False), ds.SequentialSampler(0, 2)), [1, 3]),
        (lambda: ds.DistributedSampler(4, 3, False, offset=0), [3, 7]),
        (lambda: ds.DistributedSampler(4, 3, False, offset=2), [1, 5, 9]),
        (lambda: ds.DistributedSampler(4, 2, False, num_samples=2, offset=2), [0, 4]),
    ],
)
def test_a_sampler_chooses_among_the_rows_of_its_child(sampler: Callable[[], Any], expected: list[int]) -> None:
    dataset = rows(sampler())
    assert read(dataset) == expected
    assert dataset.get_dataset_size() == len(expected)


def test_use_sampler_replaces_the_sampler_but_keeps_to_a_part() -> None:
    dataset = rows()
    dataset.use_sampler(ds.SequentialSampler(1, 3))
    assert read(dataset) == [1, 2, 3]
    first: Any
    second: Any
    first, second = rows().split([6, 4], randomize=False)
    for shard in (1, 0):
        first.use_sampler(ds.DistributedSampler(2, shard, False))
    second.use_sampler(ds.SubsetSampler([0]))
    assert (read(first), read(second)) == ([0, 2, 4], [6])


def test_add_sampler_chooses_among_the_rows_of_the_present_sampler() -> None:
    dataset = rows(ds.SequentialSampler(2, 6))
    dataset.add_sampler(ds.SubsetSampler([1, 0]))
    assert read(dataset) == [3, 2]


def test_samplers_tell_what_they_do() -> None:
    sharded = over(ds.RandomSampler(num_samples=3), ds.DistributedSampler(2, 0, False))
    assert (sharded.is_sharded(), sharded.is_shuffled(), sharded.get_num_samples()) == (True, True, 3)
    assert ds.SubsetSampler([1, 0]).get_num_samples() == 2


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (lambda: rows().use_sampler(None), TypeError),
        (lambda: rows().use_sampler([1]), TypeError),
        (lambda: rows().add_sampler(5), AttributeError),
        (lambda: untyped.RandomSampler().add_child(5), AttributeError),
        (lambda: over(ds.RandomSampler(), over(ds.RandomSampler(), ds.RandomSampler())), RuntimeError),
        (lambda: ds.DistributedSampler(2, 0, offset=3), RuntimeError),
        (lambda: ds.GeneratorDataset([1], "y", num_parallel_workers=0), ValueError),
        (lambda: untyped.GeneratorDataset([1], "y", num_parallel_workers="a"), TypeError),
        (lambda: untyped.GeneratorDataset([1], "y", python_multiprocessing=1), TypeError),
    ],
)
def test_wrong_arguments_are_refused(act: Callable[[], Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        act()
