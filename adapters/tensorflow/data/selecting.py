"""Methods of a dataset that select, group or accumulate elements. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from collshim.errors import ArgumentTypeError, ArgumentValueError
from collshim.tensorflow.constants import constant
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.data.arguments import call, require_function
from collshim.tensorflow.data.elements import Elements
from collshim.tensorflow.data.structure import as_element, components, map_components
from collshim.tensorflow.data_types import STRING
from collshim.tensorflow.errors import invalid_argument
from collshim.tensorflow.specs import spec_of
from collshim.tensorflow.tensor import dtype_name
from collshim.tensorflow.tensor_shape import TensorShape

_UNKNOWN = -2


class Selecting(Elements):
    """Methods that select elements."""

    def unique(self, name: str | None = None) -> Any:
        """Return the elements without those that were there before.

        Raises:
            TypeError: in the iteration, if the elements are not int32 or int64.
            InvalidArgumentError: in the iteration, if elements have several components.
        """
        return self._of(lambda: _unique(self), _UNKNOWN)

    def get_single_element(self, name: str | None = None) -> Any:
        """Return the only element.

        Raises:
            InvalidArgumentError: there is no element, or more than one.
        """
        found = list(itertools.islice(iter(self), 2))
        if len(found) != 1:
            raise invalid_argument(f"Dataset {'was empty' if not found else 'had more than one element'}.")
        return found[0]

    def scan(self, initial_state: Any, scan_func: Callable[..., Any], name: str | None = None) -> Any:
        """Return the outputs of a function of a state and an element; it returns the next state and the output.

        Raises:
            ValueError: ``scan_func`` is not a function.
            TypeError: in the iteration, if it does not return a pair.
        """
        function = require_function(scan_func)

        def outputs() -> Iterator[Any]:
            state = as_element(initial_state)
            for element in self:
                found = function(state, element)
                if not isinstance(found, tuple | list) or len(found) != 2:
                    raise ArgumentTypeError(
                        "Invalid `scan_func`. It should return a pair, of the new state and the output, but got "
                        f"{found!r}."
                    )
                state = as_element(found[0])
                yield as_element(found[1])

        made = self._of(outputs, self._length)
        return _described_by_first(made)

    def group_by_window(
        self,
        key_func: Callable[..., Any],
        reduce_func: Callable[[Any, Any], Any],
        window_size: Any = None,
        window_size_func: Callable[[Any], Any] | None = None,
        name: str | None = None,
    ) -> Any:
        """Return the elements of the datasets that a function returns for windows of elements with the same key.

        Args:
            key_func: returns an int64 key for an element.
            reduce_func: returns a dataset for a key and the dataset of a window's elements.
            window_size: the number of elements in a window; the last window of each key may have fewer.
            window_size_func: a function that returns this number for a key, instead of ``window_size``.
            name: without effect.

        Raises:
            ValueError: neither or both of ``window_size`` and ``window_size_func`` are given; in the iteration, if a
                key is not int64.
        """
        if (window_size is None) == (window_size_func is None):
            raise ArgumentValueError("Exactly one of `window_size` and `window_size_func` must be specified.")
        size_of = window_size_func or (lambda _: window_size)

        def reduced(key: int, found: list[Any]) -> Iterator[Any]:
            window = self._of(lambda: found, len(found))
            yield from reduce_func(constant(key, torch.int64), window)

        def elements() -> Iterator[Any]:
            waiting: dict[int, list[Any]] = {}
            for element in self:
                key = _key(call(key_func, element))
                waiting.setdefault(key, []).append(element)
                if len(waiting[key]) >= int(size_of(constant(key, torch.int64))):
                    yield from reduced(key, waiting.pop(key))
            for key in sorted(waiting):
                yield from reduced(key, waiting[key])

        return _described_by_first(self._of(elements, _UNKNOWN))

    def bucket_by_sequence_length(
        self,
        element_length_func: Callable[..., Any],
        bucket_boundaries: Sequence[int],
        bucket_batch_sizes: Sequence[int],
        padded_shapes: Any = None,
        padding_values: Any = None,
        pad_to_bucket_boundary: bool = False,
        no_padding: bool = False,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Any:
        """Return padded batches of elements of similar lengths.

        Args:
            element_length_func: returns an element's length, an int32.
            bucket_boundaries: the lengths at which a next bucket begins, in increasing order.
            bucket_batch_sizes: the batch size of each bucket: one more than there are boundaries.
            padded_shapes: see ``padded_batch``, and so ``padding_values``.
            padding_values: the values for padding.
            pad_to_bucket_boundary: whether unknown lengths are padded to the greatest length in the bucket.
            no_padding: whether batches are not padded.
            drop_remainder: whether batches that are not full are left out.
            name: without effect.

        Raises:
            ValueError: there is not one more batch size than there are boundaries.
        """
        bounds, sizes = [int(bound) for bound in bucket_boundaries], [int(size) for size in bucket_batch_sizes]
        if len(sizes) != len(bounds) + 1:
            raise ArgumentValueError(
                f"`len(bucket_batch_sizes)` must equal `len(bucket_boundaries) + 1` but `len(bucket_batch_sizes)="
                f"{len(sizes)}` and `len(bucket_boundaries)={len(bounds)}`."
            )

        def bucket(*element: Any) -> Any:
            length = int(element_length_func(*element))
            return constant(sum(bound <= length for bound in bounds), torch.int64)

        def batches(key: Any, window: Any) -> Any:
            number = int(key)
            if no_padding:
                return window.batch(sizes[number], drop_remainder)
            shapes = padded_shapes
            if pad_to_bucket_boundary:
                if number == len(bounds):
                    raise invalid_argument("an element is longer than the last of bucket_boundaries allows")
                shapes = _filled(window.element_spec if shapes is None else shapes, bounds[number] - 1, shapes is None)
            return window.padded_batch(sizes[number], shapes, padding_values, drop_remainder)

        return self.group_by_window(bucket, batches, window_size_func=lambda key: sizes[int(key)])

    @staticmethod
    def sample_from_datasets(
        datasets: Sequence[Any],
        weights: Any = None,
        seed: int | None = None,
        stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: bool | None = None,
    ) -> Any:
        """Return elements of several datasets, each from a dataset that is drawn at random.

        Args:
            datasets: the datasets.
            weights: their probabilities, a list or a tensor; None for equal ones.
            seed: a seed; if it is None, one is drawn from torch's generator.
            stop_on_empty_dataset: whether the first dataset that ends ends all; else the others go on.
            rerandomize_each_iteration: whether the choice differs from iteration to iteration.

        Raises:
            ValueError: there are no datasets, or not one weight for each.
        """
        _require_datasets(datasets)
        chances = [1.0] * len(datasets) if weights is None else convert_to_tensor(weights).tolist()
        if len(chances) != len(datasets):
            raise ArgumentValueError(
                f"Invalid `weights`. There should be one for each dataset, but got {len(chances)} for {len(datasets)}."
            )
        first = int(torch.randint(1 << 62, ())) if seed is None else int(seed)
        iterations = itertools.count() if rerandomize_each_iteration else itertools.repeat(0)

        def numbers(left: set[int]) -> Iterator[int]:
            draw = random.Random(f"{first}/{next(iterations)}")
            while any(chances[number] > 0 for number in left):
                places = sorted(left)
                yield draw.choices(places, [chances[number] for number in places])[0]

        return datasets[0]._of(lambda: _chosen(datasets, numbers, stop_on_empty_dataset), _UNKNOWN)

    @staticmethod
    def choose_from_datasets(datasets: Sequence[Any], choice_dataset: Any, stop_on_empty_dataset: bool = True) -> Any:
        """Return elements of several datasets, each from the dataset whose number ``choice_dataset`` has next.

        Raises:
            ValueError: there are no datasets.
            TypeError: in the iteration, if a number is not int64.
        """
        _require_datasets(datasets)

        def numbers(left: set[int]) -> Iterator[int]:
            for number in choice_dataset:
                if number.dtype is not torch.int64:
                    raise ArgumentTypeError(f"Elements of `choice_dataset` must be scalar int64, but got {number!r}.")
                yield int(number)

        return datasets[0]._of(lambda: _chosen(datasets, numbers, stop_on_empty_dataset), _UNKNOWN)


def _require_datasets(datasets: Sequence[Any]) -> None:
    if not datasets:
        raise ArgumentValueError("Invalid `datasets`. `datasets` should not be empty.")


def _chosen(datasets: Sequence[Any], numbers: Callable[[set[int]], Iterator[int]], stops: bool) -> Iterator[Any]:
    """Yield the next element of each dataset that ``numbers``, a function of those that have not ended, names."""
    parts, left = [iter(dataset) for dataset in datasets], set(range(len(datasets)))
    for number in numbers(left):
        if number not in range(len(parts)):
            raise invalid_argument(f"there are {len(parts)} datasets, but number {number} was chosen")
        found = list(itertools.islice(parts[number], 1))
        if not found:
            left.discard(number)
        if (stops and not found) or not left:
            return
        yield from found


def _unique(elements: Iterable[Any]) -> Iterator[Any]:
    seen = set[Any]()
    for element in elements:
        if len(components(element)) != 1:
            raise invalid_argument("unique: the elements should have one component")
        if element.dtype not in (torch.int32, torch.int64, STRING):
            raise ArgumentTypeError(
                f"unique: the elements should be int32, int64 or string, but got {dtype_name(element.dtype)}"
            )
        key = (tuple(element.shape), tuple(np.ravel(element.numpy()).tolist()))
        if key not in seen:
            seen.add(key)
            yield element


def _key(value: Any) -> int:
    found = convert_to_tensor(value) if isinstance(value, torch.Tensor) else constant(value, torch.int64)
    if found.dtype is not torch.int64:
        raise ArgumentValueError(f"a key should be int64, but got {dtype_name(found.dtype)}")
    return int(found)


def _filled(shapes: Any, length: int, described: bool) -> Any:
    """Return shapes, or those of a description, with ``length`` for unknown lengths."""
    if described:
        return map_components(lambda spec: _filled(spec.shape, length, False), shapes)
    if isinstance(shapes, tuple) and not isinstance(shapes, TensorShape):
        return tuple(_filled(shape, length, False) for shape in shapes)
    return [length if each in (None, -1) else each for each in shapes]


def _described_by_first(made: Any) -> Any:
    made._described = lambda: map_components(spec_of, next(iter(made)))
    return made
