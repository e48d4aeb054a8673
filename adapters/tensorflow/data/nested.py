"""Methods of a dataset whose functions return datasets. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable
from collections.abc import Iterator as PythonIterator
from typing import Any

from collshim.errors import ArgumentTypeError
from collshim.tensorflow import structures
from collshim.tensorflow.errors import invalid_argument
from collshim.tensorflow.specs import DatasetSpec


class Nested:
    """The methods of ``tf.data.Dataset`` whose functions return datasets."""

    element_spec: Any

    @property
    def _type_spec(self) -> DatasetSpec:
        return DatasetSpec(self.element_spec)

    def apply(self, transformation_func: Callable[[Any], Any]) -> Any:
        """Return the dataset that a function returns for this one.

        Raises:
            TypeError: the function does not return a dataset.
        """
        found = transformation_func(self)
        if not isinstance(found, Nested):
            raise ArgumentTypeError(f"`transformation_func` must return a `tf.data.Dataset` object. Got {type(found)}.")
        return found

    def flat_map(self, map_func: Callable[..., Any], name: str | None = None) -> Any:
        """Return the elements of the datasets that a function returns for each element, one dataset after another.

        Raises:
            TypeError: when iterated, if the function does not return a dataset.
        """
        return self._nested(lambda parts: itertools.chain.from_iterable(parts), map_func)

    def interleave(
        self,
        map_func: Callable[..., Any],
        cycle_length: int | None = None,
        block_length: int | None = None,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Any:
        """Return the elements of the datasets that a function returns for each element, from several in turn.

        Args:
            map_func: the function.
            cycle_length: the number of datasets that take turns; by default the number of CPUs.
            block_length: the number of elements in each turn; by default 1.
            num_parallel_calls: without effect.
            deterministic: without effect.
            name: without effect.

        Raises:
            InvalidArgumentError: a length is below 1.
            TypeError: when iterated, if the function does not return a dataset.
        """
        width = (os.cpu_count() or 1) if cycle_length in (None, -1) else int(cycle_length or 0)
        block = 1 if block_length in (None, -1) else int(block_length or 0)
        for what, number in (("cycle_length", width), ("block_length", block)):
            if number < 1:
                raise invalid_argument(f"{what} must be greater than zero.")
        return self._nested(lambda parts: _in_turn(parts, width, block), map_func)

    def _nested(self, join: Callable[[Iterable[Any]], Iterable[Any]], map_func: Callable[..., Any]) -> Any:
        """Return a dataset of the elements, joined by ``join``, of the datasets that ``map_func`` returns."""
        raise NotImplementedError


def _in_turn(parts: Iterable[Any], width: int, block: int) -> PythonIterator[Any]:
    """Yield ``block`` elements of each of ``width`` parts in turn; when a part ends, the next one replaces it."""
    waiting = iter(parts)
    places: list[Any] = [None] * width
    place, has_more = 0, True
    while has_more or any(part is not None for part in places):
        if places[place] is None and has_more:
            found = next(waiting, None)
            has_more = found is not None
            places[place] = None if found is None else iter(found)
            continue
        if places[place] is not None:
            taken = list(itertools.islice(places[place], block))
            yield from taken
            if len(taken) < block:
                places[place] = None
        place = (place + 1) % width


def datasets_of(value: Any) -> Any:
    """Return a nest of datasets that are to be zipped.

    Raises:
        TypeError: the nest is empty, is a list, or holds something else.
    """
    leaves = structures.flatten(value)
    if isinstance(value, list) or not leaves or not all(isinstance(one, Nested) for one in leaves):
        raise ArgumentTypeError(
            "Invalid input to `zip`. Inputs are expected to be (nested) structures of `tf.data.Dataset` objects, but "
            f"encountered {type(value)!r}."
        )
    return value


def require_dataset(value: Any) -> Any:
    """Return the dataset that a function has returned.

    Raises:
        TypeError: ``value`` is not a dataset.
    """
    if not isinstance(value, Nested):
        raise ArgumentTypeError(f"The `map_func` argument must return a `Dataset` object. Got {type(value)!r}.")
    return value
