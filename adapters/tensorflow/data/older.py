"""``tf.data.experimental``'s functions, most of which ``tf.data.Dataset`` has as methods: for ``Dataset.apply``.

Source: TensorFlow 2.21, run eagerly on CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from inspect import signature
from typing import Any

import torch

from collshim.errors import ArgumentTypeError
from collshim.tensorflow.data.dataset import INFINITE_CARDINALITY, Dataset
from collshim.tensorflow.data.nested import require_dataset
from collshim.tensorflow.errors import FailedPreconditionError
from collshim.tensorflow.tensor import Tensor

Change = Callable[[Dataset], Any]


def _from_method(name: str) -> Callable[..., Change]:
    """Return a function whose result calls a method of the dataset that it is given, with the function's arguments."""
    method = getattr(Dataset, name)

    def function(*args: Any, **kwargs: Any) -> Change:
        signature(method).bind(None, *args, **kwargs)
        return lambda dataset: method(dataset, *args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return a function for ``Dataset.apply`` that calls ``Dataset.{name}`` with these arguments."
    return function


ignore_errors, rejection_resample = map(_from_method, ("ignore_errors", "rejection_resample"))
bucket_by_sequence_length, group_by_window = map(_from_method, ("bucket_by_sequence_length", "group_by_window"))
scan, take_while, unbatch, unique = map(_from_method, ("scan", "take_while", "unbatch", "unique"))


def enumerate_dataset(start: int = 0) -> Change:
    """Return a function for ``Dataset.apply`` that calls ``Dataset.enumerate``."""
    return lambda dataset: dataset.enumerate(start)


def dense_to_ragged_batch(batch_size: Any, drop_remainder: bool = False, row_splits_dtype: Any = torch.int64) -> Change:
    """Return a function for ``Dataset.apply`` that calls ``Dataset.ragged_batch``."""
    return lambda dataset: dataset.ragged_batch(batch_size, drop_remainder, row_splits_dtype)


def shuffle_and_repeat(buffer_size: int, count: int | None = None, seed: int | None = None) -> Change:
    """Return a function for ``Dataset.apply`` that calls ``shuffle`` and ``repeat``."""
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


def map_and_batch(
    map_func: Callable[..., Any],
    batch_size: Any,
    num_parallel_batches: Any = None,
    drop_remainder: bool = False,
    num_parallel_calls: Any = None,
) -> Change:
    """Return a function for ``Dataset.apply`` that calls ``map`` and ``batch``."""
    return lambda dataset: dataset.map(map_func).batch(batch_size, drop_remainder)


def parallel_interleave(
    map_func: Callable[..., Any],
    cycle_length: int,
    block_length: int = 1,
    sloppy: bool = False,
    buffer_output_elements: Any = None,
    prefetch_input_elements: Any = None,
) -> Change:
    """Return a function for ``Dataset.apply`` that calls ``interleave``."""
    return lambda dataset: dataset.interleave(map_func, cycle_length, block_length)


def prefetch_to_device(device: Any, buffer_size: Any = None) -> Change:
    """Return a function for ``Dataset.apply`` that returns the same dataset: nothing is read ahead."""
    return lambda dataset: dataset


def copy_to_device(target_device: Any, source_device: Any = "/cpu:0") -> Change:
    """Return a function for ``Dataset.apply`` that returns the same dataset: data does not move."""
    return lambda dataset: dataset


def choose_from_datasets(datasets: Sequence[Any], choice_dataset: Any, stop_on_empty_dataset: bool = False) -> Any:
    """Call ``Dataset.choose_from_datasets``, with a different default."""
    return Dataset.choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset)


def sample_from_datasets(
    datasets: Sequence[Any], weights: Any = None, seed: int | None = None, stop_on_empty_dataset: bool = False
) -> Any:
    """Call ``Dataset.sample_from_datasets``."""
    return Dataset.sample_from_datasets(datasets, weights, seed, stop_on_empty_dataset)


def cardinality(dataset: Dataset) -> Tensor:
    """Return the number of elements; see ``Dataset.cardinality``."""
    found: Tensor = require_dataset(dataset).cardinality()
    return found


def assert_cardinality(expected_cardinality: Any) -> Change:
    """Return a function for ``Dataset.apply`` that sets the number of elements.

    Raises:
        FailedPreconditionError: when iterated, if there are fewer or more elements.
    """
    expected = int(expected_cardinality)
    wanted = "an infinite number of" if expected == INFINITE_CARDINALITY else str(expected)

    def elements(dataset: Dataset) -> Iterator[Any]:
        count = 0
        for element in dataset:
            count += 1
            if 0 <= expected < count:
                raise _unexpected(wanted, f"at least {count}")
            yield element
        if count != expected:
            raise _unexpected(wanted, f"only {count}")

    return lambda dataset: dataset._of(lambda: elements(dataset), expected)


def _unexpected(wanted: str, found: str) -> Exception:
    text = f"Input dataset was expected to contain {wanted} elements but contained {found} elements."
    return FailedPreconditionError(None, None, text)


def get_single_element(dataset: Dataset) -> Any:
    """Return the element of a dataset that has only one; see ``Dataset.get_single_element``."""
    return require_dataset(dataset).get_single_element()


def get_structure(dataset_or_iterator: Any) -> Any:
    """Return the description of the elements of a dataset or an iterator.

    Raises:
        TypeError: it is neither.
    """
    if not hasattr(dataset_or_iterator, "element_spec"):
        raise ArgumentTypeError(
            f"`dataset_or_iterator` is a {type(dataset_or_iterator).__name__}, should be a dataset or an iterator"
        )
    return dataset_or_iterator.element_spec


def Counter(start: Any = 0, step: Any = 1, dtype: Any = torch.int64) -> Dataset:
    """Call ``Dataset.counter``, by its older name."""
    return Dataset.counter(start, step, dtype)
