"""``tf.data.Dataset``: elements that are computed on demand, again in each iteration.

Source: TensorFlow 2.21, run eagerly on CPU.
"""

from __future__ import annotations

import builtins
import functools
import itertools
import math
import random
from collections.abc import Callable, Iterable
from typing import Any

import torch

from collshim.errors import ArgumentTypeError, ArgumentValueError
from collshim.tensorflow.arrays import lengths_of
from collshim.tensorflow.composites import as_component
from collshim.tensorflow.constants import constant
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.data import described, streams
from collshim.tensorflow.data.arguments import call, holds, joined, require_function, whole
from collshim.tensorflow.data.further import Further
from collshim.tensorflow.data.iterator import Iterator, NumpyIterator
from collshim.tensorflow.data.nested import Nested, datasets_of, require_dataset
from collshim.tensorflow.data.options import Options
from collshim.tensorflow.data.selecting import Selecting
from collshim.tensorflow.data.structure import as_element, components, map_components
from collshim.tensorflow.data.windows import Windows
from collshim.tensorflow.errors import invalid_argument
from collshim.tensorflow.specs import TensorSpec, spec_of
from collshim.tensorflow.tensor import Tensor

AUTOTUNE = -1
INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2


class Dataset(Nested, Windows, Selecting, Further, Iterable[Any]):
    """A dataset whose elements are tensors, or tuples and mappings of tensors.

    Static methods create one, others derive one. ``num_parallel_calls``, ``deterministic`` and ``name`` have no effect.
    """

    def __init__(
        self,
        elements: Callable[[], Iterable[Any]],
        length: int,
        options: Options | None = None,
        element_spec: Callable[[], Any] | None = None,
    ) -> None:
        """Take a function that returns the elements, again at each call, and their number or a ``_CARDINALITY``.

        ``element_spec`` returns their description; without it, the first element describes all.
        """
        self._elements = elements
        self._length = length
        self._options = options or Options()
        self._described = element_spec or (lambda: described.first(self))

    def _of(
        self, elements: Callable[[], Iterable[Any]], length: int, element_spec: Callable[[], Any] | None = None
    ) -> Dataset:
        return Dataset(elements, length, self._options, element_spec or self._described)

    @property
    def element_spec(self) -> Any:
        """A description of the elements: a ``tf.TensorSpec`` for each component, with None for lengths that may vary.

        If a function computes the elements, it is called on the first one.
        """
        return self._described()

    def _counted(self, count: Callable[[int], int]) -> int:
        return count(self._length) if self._length >= 0 else self._length

    @staticmethod
    def range(*args: Any, output_type: Any = torch.int64, name: str | None = None) -> Dataset:
        """Return a dataset of the integers of Python's ``range``.

        Raises:
            ValueError: there is no argument, or more than three.
        """
        if not 1 <= len(args) <= 3:
            raise ArgumentValueError(
                f"Invalid `args`. The length of `args` should be between 1 and 3 but was {len(args)}."
            )
        numbers = builtins.range(*map(int, args))
        return Dataset(
            lambda: (constant(number, output_type) for number in numbers),
            len(numbers),
            element_spec=lambda: TensorSpec((), output_type),
        )

    @staticmethod
    def counter(start: Any = 0, step: Any = 1, dtype: Any = torch.int64, name: str | None = None) -> Dataset:
        """Return an endless dataset of numbers, from ``start`` on in steps of ``step``."""
        numbers = (int(start), int(step))
        return Dataset(
            lambda: (constant(number, dtype) for number in itertools.count(*numbers)),
            INFINITE_CARDINALITY,
            element_spec=lambda: TensorSpec((), dtype),
        )

    @staticmethod
    def from_tensors(tensors: Any, name: str | None = None) -> Dataset:
        """Return a dataset of one element."""
        element = map_components(as_component, tensors)
        return Dataset(lambda: [element], 1, element_spec=lambda: map_components(spec_of, element))

    @staticmethod
    def from_tensor_slices(tensors: Any, name: str | None = None) -> Dataset:
        """Return a dataset of the slices of all components along axis 0.

        Raises:
            ValueError: a component is a scalar, or their lengths differ.
        """
        whole = map_components(as_component, tensors)
        parts = components(whole)
        if any(part.dim() == 0 for part in parts):
            raise ArgumentValueError("Unbatching a tensor is only supported for rank >= 1")
        lengths = [part.shape[0] for part in parts]
        for length in lengths:
            if length != lengths[0]:
                raise ArgumentValueError(f"Dimensions {lengths[0]} and {length} are not compatible")
        places = builtins.range(lengths[0])
        return Dataset(
            lambda: (_slice(whole, place) for place in places),
            lengths[0],
            element_spec=lambda: described.unbatched(map_components(spec_of, whole)),
        )

    @staticmethod
    def zip(*args: Any, datasets: Any = None, name: str | None = None) -> Dataset:
        """Return a dataset of nests of the elements of several datasets, passed separately or in one nest."""
        several = datasets_of(datasets if datasets is not None else args if len(args) != 1 else args[0])
        parts = components(several)
        known = [one._length for one in parts if one._length != INFINITE_CARDINALITY]
        length = UNKNOWN_CARDINALITY if UNKNOWN_CARDINALITY in known else min(known, default=INFINITE_CARDINALITY)

        def nested(elements: Iterable[Any]) -> Any:
            given = iter(elements)
            return map_components(lambda _: next(given), several)

        return Dataset(
            lambda: map(nested, builtins.zip(*parts, strict=False)),
            length,
            functools.reduce(Options.merge, [one._options for one in parts], Options()),
            element_spec=lambda: nested(one.element_spec for one in parts),
        )

    @staticmethod
    def from_generator(
        generator: Callable[..., Any],
        output_types: Any = None,
        output_shapes: Any = None,
        args: Any = None,
        output_signature: Any = None,
        name: str | None = None,
    ) -> Dataset:
        """Return a dataset of the elements of the iterable ``generator(*args)``, called once in each iteration.

        Args:
            generator: a function.
            output_types: the elements' dtypes, in their structure; or ``output_signature``, with their ``TensorSpec``s.
            output_shapes: the elements' shapes; if left out, they are unknown.
            args: arguments of ``generator``, to which they are passed as NumPy arrays.
            output_signature: see ``output_types``.
            name: without effect.

        Raises:
            TypeError: ``generator`` is not callable, or there is neither a type nor a signature.
            InvalidArgumentError: in the iteration, if an element has a different structure or shape.
        """
        if not callable(generator):
            raise ArgumentTypeError("`generator` must be a Python callable.")
        spec = described.signature(output_types, output_shapes, output_signature)
        given = [convert_to_tensor(one).numpy() for one in args or ()]
        return Dataset(
            lambda: (described.fitted(element, spec) for element in generator(*given)),
            UNKNOWN_CARDINALITY,
            element_spec=lambda: spec,
        )

    def map(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
    ) -> Dataset:
        """Apply ``map_func`` to each element; a tuple is passed as several arguments."""
        require_function(map_func)

        def compute(element: Any) -> Any:
            return as_element(call(map_func, element))

        made = self._of(lambda: builtins.map(compute, self), self._length)
        made._described = lambda: described.mapped(self, made, compute)
        return made

    def _nested(self, join: Callable[[Iterable[Any]], Iterable[Any]], map_func: Callable[..., Any]) -> Dataset:
        require_function(map_func)
        made = self._of(lambda: join(require_dataset(call(map_func, element)) for element in self), UNKNOWN_CARDINALITY)
        made._described = lambda: described.first(made)
        return made

    def rebatch(self, batch_size: Any, drop_remainder: bool = False, name: str | None = None) -> Dataset:
        """Return the rows of all elements in batches of ``batch_size``, or of several sizes in turn."""
        rows, sizes = self.unbatch(), lengths_of(batch_size)
        if len(sizes) == 1:
            return rows.batch(sizes[0], drop_remainder)
        spec = described.batched(rows.element_spec, None)
        return self._of(lambda: streams.batches(rows, sizes, drop_remainder), UNKNOWN_CARDINALITY, lambda: spec)

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> Dataset:
        """Keep the elements for which ``predicate`` is true."""
        require_function(predicate)
        return self._of(lambda: builtins.filter(lambda element: holds(predicate, element), self), UNKNOWN_CARDINALITY)

    def batch(
        self,
        batch_size: Any,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset:
        """Stack ``batch_size`` elements at a time along a new axis 0; the last batch may have fewer.

        Raises:
            InvalidArgumentError: the size is below 1.
        """
        size = _positive(batch_size, "Batch size must be greater than zero.")
        length = self._counted(lambda count: count // size if drop_remainder else math.ceil(count / size))
        return self._of(
            lambda: streams.batches(self, [size], drop_remainder),
            length,
            lambda: described.batched(self.element_spec, size if drop_remainder else None),
        )

    def unbatch(self, name: str | None = None) -> Dataset:
        """Return the slices of each element along axis 0."""
        return self._of(
            lambda: itertools.chain.from_iterable(map(Dataset.from_tensor_slices, self)),
            UNKNOWN_CARDINALITY,
            lambda: described.unbatched(self.element_spec),
        )

    def shuffle(
        self,
        buffer_size: Any,
        seed: int | None = None,
        reshuffle_each_iteration: bool | None = True,
        name: str | None = None,
    ) -> Dataset:
        """Draw each element at random from the next ``buffer_size`` elements, in a new order in each iteration.

        If ``seed`` is None, a seed is drawn from torch's generator, which ``tf.random.set_seed`` seeds.

        Raises:
            InvalidArgumentError: ``buffer_size`` is below 1.
        """
        size = _positive(buffer_size, "buffer_size must be greater than zero or UNKNOWN_CARDINALITY")
        first = int(torch.randint(1 << 62, ())) if seed is None else int(seed)
        iterations = itertools.count() if reshuffle_each_iteration in (None, True) else itertools.repeat(0)
        return self._of(
            lambda: streams.shuffled(self, size, random.Random(f"{first}/{next(iterations)}")), self._length
        )

    def repeat(self, count: Any = None, name: str | None = None) -> Dataset:
        """Repeat the dataset ``count`` times; forever if ``count`` is None."""
        if count is None or whole(count) < 0:
            return self._of(
                lambda: streams.repeated(self, itertools.count()), INFINITE_CARDINALITY if self._length else 0
            )
        times = int(count)
        return self._of(
            lambda: streams.repeated(self, builtins.range(times)), self._counted(lambda length: length * times)
        )

    def take(self, count: Any, name: str | None = None) -> Dataset:
        """Return the first ``count`` elements; all for -1."""
        limit = None if whole(count) < 0 else int(count)
        if limit is None:
            return self
        length = limit if self._length == INFINITE_CARDINALITY else self._counted(lambda known: min(known, limit))
        return self._of(lambda: itertools.islice(self, limit), length)

    def skip(self, count: Any, name: str | None = None) -> Dataset:
        """Skip the first ``count`` elements; all for -1."""
        if whole(count) < 0:
            return self.take(0)
        return self._of(
            lambda: itertools.islice(self, int(count), None), self._counted(lambda known: max(0, known - int(count)))
        )

    def shard(self, num_shards: Any, index: Any, name: str | None = None) -> Dataset:
        """Return every ``num_shards``-th element, starting with the one at ``index``.

        Raises:
            InvalidArgumentError: ``num_shards`` is below 1, or ``index`` is out of range.
        """
        step = _positive(
            num_shards, f"Number of shards must be greater than zero (currently num_shards = {num_shards})."
        )
        if not 0 <= int(index) < step:
            raise invalid_argument(f"Index must be between 0 and {step - 1} (currently index = {index}).")
        length = self._counted(lambda known: len(builtins.range(int(index), known, step)))
        return self._of(lambda: itertools.islice(self, int(index), None, step), length)

    def prefetch(self, buffer_size: Any, name: str | None = None) -> Dataset:
        """Return the same dataset: nothing is read ahead."""
        return self

    def cache(self, filename: Any = "", name: str | None = None) -> Dataset:
        """Keep the elements in memory once all were requested.

        Raises:
            TypeError: ``filename`` is not empty.
        """
        if filename:
            raise ArgumentTypeError(f"cache: filename is {filename!r}, should be empty: elements are kept in memory")
        kept: list[list[Any]] = []
        return self._of(lambda: iter(kept[0]) if kept else streams.kept(self, kept), self._length)

    def concatenate(self, dataset: Dataset, name: str | None = None) -> Dataset:
        """Return a dataset of this dataset's elements, followed by those of ``dataset``, of the same dtypes."""
        special = [one for one in (self._length, dataset._length) if one < 0]
        length = max(special, default=self._length + dataset._length)
        return self._of(lambda: joined(self, dataset), length).with_options(dataset.options())

    def enumerate(self, start: int = 0, name: str | None = None) -> Dataset:
        """Return pairs of an element's number, int64, and the element."""
        return self._of(
            lambda: ((constant(number, torch.int64), one) for number, one in builtins.enumerate(self, start)),
            self._length,
            lambda: (TensorSpec((), torch.int64), self.element_spec),
        )

    def reduce(self, initial_state: Any, reduce_func: Callable[[Any, Any], Any], name: str | None = None) -> Any:
        """Return the final state; ``reduce_func`` computes each state from the previous one and an element."""
        state, _ = as_element(initial_state), require_function(reduce_func)
        for element in self:
            state = as_element(reduce_func(state, element))
        return state

    def with_options(self, options: Options, name: str | None = None) -> Dataset:
        """Return the same elements with these options, and the dataset's own options that these do not set.

        Raises:
            TypeError: ``options`` is not a ``tf.data.Options``.
        """
        if not isinstance(options, Options):
            raise ArgumentTypeError(f"options is a {type(options).__name__}, should be a tf.data.Options")
        return Dataset(self._elements, self._length, self._options.merge(options), self._described)

    def options(self) -> Options:
        """Return the dataset's options."""
        return self._options

    def cardinality(self, name: str | None = None) -> Tensor:
        """Return the number of elements, int64; negative if infinite or unknown."""
        return constant(self._length, torch.int64)

    def as_numpy_iterator(self) -> NumpyIterator:
        """Return an iterator over the elements, as NumPy arrays and scalars."""
        return NumpyIterator(map_components(lambda part: part.numpy(), element) for element in self)

    def __iter__(self) -> Iterator:
        return Iterator(self._elements(), self._described)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} element_spec={self.element_spec}>"

    def __len__(self) -> int:
        if self._length < 0:
            kind = "infinite" if self._length == INFINITE_CARDINALITY else "unknown"
            raise ArgumentTypeError(f"The dataset {'is' if kind == 'infinite' else 'length is'} {kind}.")
        return self._length

    def __bool__(self) -> bool:
        return True


def _slice(whole: Any, place: int) -> Any:
    return map_components(lambda part: part[place], whole)


def _positive(number: Any, said: str) -> int:
    if whole(number) < 1:
        raise invalid_argument(said)
    return int(number)
