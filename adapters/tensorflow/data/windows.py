"""``window``, ``padded_batch`` and ``take_while`` of ``tf.data.Dataset``. Source: TensorFlow 2.21, run on CPU."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.data.arguments import holds, require_function
from collshim.tensorflow.data.elements import Elements
from collshim.tensorflow.data.structure import components, map_components
from collshim.tensorflow.errors import DataLossError, invalid_argument
from collshim.tensorflow.specs import DatasetSpec, TensorSpec
from collshim.tensorflow.string_tensor import StringTensor, string_tensor
from collshim.tensorflow.tensor import adopt, plain
from collshim.tensorflow.tensor_shape import TensorShape

_UNKNOWN = -2


class Windows(Elements):
    """Methods that group elements."""

    def _counted(self, count: Callable[[int], int]) -> int:
        raise NotImplementedError

    def take_while(self, predicate: Callable[..., Any], name: str | None = None) -> Any:
        """Return the elements before the first one for which ``predicate`` is false."""
        require_function(predicate)
        return self._of(lambda: itertools.takewhile(lambda element: holds(predicate, element), self), _UNKNOWN)

    def window(
        self, size: Any, shift: Any = None, stride: Any = 1, drop_remainder: bool = False, name: str | None = None
    ) -> Any:
        """Return a dataset of windows: datasets of ``size`` elements, each starting ``shift`` elements after the last.

        Raises:
            InvalidArgumentError: a number is below 1.
        """
        length, step, apart = int(size), int(size if shift is None else shift), int(stride)
        if min(length, step, apart) < 1:
            raise invalid_argument("Window size, shift and stride must be greater than zero.")

        def count(elements: int) -> int:
            span = (length - 1) * apart + 1
            return max(0, (elements - span) // step + 1) if drop_remainder else math.ceil(elements / step)

        def dataset(places: Callable[[Any], Any], found: list[Any], spec: TensorSpec) -> Any:
            return self._of(lambda: map(places, found), len(found), lambda: spec)

        def windows() -> Iterator[Any]:
            for found in _windows(iter(self), length, step, apart, drop_remainder):
                parts = [components(element) for element in found]
                numbers = iter(range(len(parts[0])))

                def column(spec: TensorSpec, parts: list[Any] = parts, numbers: Iterator[int] = numbers) -> Any:
                    place = next(numbers)
                    return dataset(lambda row: row[place], parts, spec)

                yield map_components(column, self.element_spec)

        return self._of(windows, self._counted(count), lambda: map_components(DatasetSpec, self.element_spec))

    def padded_batch(
        self,
        batch_size: Any,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Any:
        """Return batches of elements that are padded to the same shape: the longest element's, or ``padded_shapes``.

        Raises:
            DataLossError: in the iteration, if an element is longer than ``padded_shapes``.
            TypeError: in the iteration, if a number of ``padding_values`` does not fit the component's dtype.
        """
        size = int(batch_size)

        def batches() -> Iterator[Any]:
            for found in _windows(iter(self), size, size, 1, drop_remainder):
                shapes = _for_each(self.element_spec, padded_shapes)
                values = _for_each(self.element_spec, padding_values)
                given = iter(zip(shapes, values, strict=True))
                yield map_components(lambda *parts: _padded(parts, *next(given)), *found)  # noqa: B023

        def spec() -> Any:
            given = iter(_for_each(self.element_spec, padded_shapes))
            length = size if drop_remainder else None

            def described(one: TensorSpec) -> TensorSpec:
                shape = next(given)
                inner = list(one.shape) if shape is None else list(TensorShape(_open(shape)))
                return TensorSpec([length, *inner], one.dtype)

            return map_components(described, self.element_spec)

        return self._of(
            batches, self._counted(lambda count: count // size if drop_remainder else math.ceil(count / size)), spec
        )


def _windows(elements: Iterator[Any], size: int, shift: int, stride: int, drops: bool) -> Iterator[list[Any]]:
    waiting: list[Any] = []
    span = (size - 1) * stride + 1
    while True:
        waiting += itertools.islice(elements, max(0, span - len(waiting)))
        found = waiting[::stride][:size]
        if not found or (drops and len(found) < size):
            return
        yield found
        for _ in itertools.islice(elements, max(0, shift - len(waiting))):
            pass
        waiting = waiting[shift:]


def _for_each(element_spec: Any, given: Any) -> list[Any]:
    """Return one value for each component; a single value is used for all."""
    count = len(components(element_spec))
    if given is None or isinstance(given, TensorShape) or not isinstance(given, tuple | dict | list):
        return [given] * count
    if isinstance(given, list) or count == 1:
        return [given if isinstance(given, list) else components(given)[0]] * count
    return components(given)


def _open(shape: Any) -> Any:
    """Return a shape with None for -1."""
    return [None if length == -1 else length for length in shape] if isinstance(shape, list | tuple) else shape


def _padded(parts: tuple[Any, ...], shape: Any, value: Any) -> Any:
    longest = [max(lengths) for lengths in zip(*[tuple(part.shape) for part in parts], strict=True)]
    wanted = [
        most if length is None else int(length)
        for most, length in zip(longest, longest if shape is None else list(TensorShape(_open(shape))), strict=True)
    ]
    if any(length < most for length, most in zip(wanted, longest, strict=True)):
        raise DataLossError(
            None, None, f"Attempted to pad to a smaller size than the input element: {wanted}, {longest}"
        )
    if isinstance(parts[0], StringTensor):
        filled: Any = np.full((len(parts), *wanted), b"" if value is None else string_tensor(value).numpy(), object)
        for row, part in enumerate(parts):
            filled[(row, *map(slice, part.shape))] = part.numpy()
        return StringTensor(filled)
    kind = plain(parts[0]).dtype
    filling = torch.zeros((), dtype=kind) if value is None else plain(convert_to_tensor(value, kind))
    whole = filling.expand(len(parts), *wanted).clone()
    for row, part in zip(whole, parts, strict=True):
        row[tuple(slice(length) for length in part.shape)] = plain(part)
    return adopt(whole)
