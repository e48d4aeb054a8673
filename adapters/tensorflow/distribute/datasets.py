"""Datasets of a strategy, whose elements have one part for each replica.

Source: TensorFlow 2.21, on 1 to 3 CPUs and on two workers.
"""

from __future__ import annotations

import collections.abc
import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate, islice, pairwise
from typing import Any

import numpy as np
import torch

from collshim.errors import ArgumentIndexError, ArgumentTypeError, ArgumentValueError
from collshim.tensorflow.data.arguments import require_function
from collshim.tensorflow.data.dataset import UNKNOWN_CARDINALITY, Dataset
from collshim.tensorflow.data.iterator import Iterator as DatasetIterator
from collshim.tensorflow.data.optional import Optional
from collshim.tensorflow.data.options import AutoShardPolicy
from collshim.tensorflow.data.structure import as_element, components, map_components
from collshim.tensorflow.distribute import stack
from collshim.tensorflow.distribute.values import regroup
from collshim.tensorflow.specs import DatasetSpec, PerReplicaSpec, RaggedTensorSpec, SparseTensorSpec, TensorSpec
from collshim.tensorflow.string_tensor import StringTensor, empty_strings


class DistributedIterator(DatasetIterator):
    """An iterator over the replicas' data: distributed values, or plain values if there is only one replica overall."""

    def __init__(
        self, elements: Iterator[Any], element_spec: Callable[[], Any], asked: list[bool] | None = None
    ) -> None:
        """Iterate over elements; ``asked`` is not empty while the caller requests an optional."""
        super().__init__(elements, element_spec)
        self._asked: list[bool] = [] if asked is None else asked

    def get_next_as_optional(self) -> Optional:
        """Return the next element as a ``tf.experimental.Optional``, which is empty at the end."""
        self._asked.append(True)
        try:
            return super().get_next_as_optional()
        finally:
            self._asked.clear()


class _Described(collections.abc.Iterable[Any]):
    """A dataset with a description of itself, in addition to the description of its elements."""

    element_spec: Any

    def reduce(self, initial_state: Any, reduce_func: Callable[[Any, Any], Any]) -> Any:
        """Return the final state; ``reduce_func`` computes each state from the previous one and an element."""
        require_function(reduce_func)
        state = as_element(initial_state)
        for element in self:
            state = as_element(reduce_func(state, element))
        return state

    @property
    def _type_spec(self) -> DatasetSpec:
        return DatasetSpec(self.element_spec)


class DistributedDataset(_Described):
    """A dataset whose batches are divided among the replicas, in replica order, into equal numbers of rows.

    If a batch has too few rows, the last replicas have fewer rows, or none. With several workers, each worker reads its
    replicas' rows of every batch. Without sharding, each takes all rows of its own dataset: as many at a time as each
    replica would have of a batch, in turn, beginning with its own replica. All end together, as in
    ``DistributedDatasetsFromFunction``.
    """

    def __init__(self, dataset: Any, extended: Any) -> None:
        """Distribute a dataset; ``extended`` is the strategy's."""
        self._dataset, self._extended = _require_dataset(dataset), extended

    def __iter__(self) -> DistributedIterator:
        return DistributedIterator(self._elements(), lambda: self.element_spec)

    @property
    def cardinality(self) -> Any:
        """The number of the dataset's elements, a ``numpy.int64``; negative if infinite or unknown."""
        return np.int64(int(self._dataset.cardinality()))

    def _is_shared(self) -> bool:
        """Return whether each worker reads its part of a batch, instead of the whole batch."""
        policy = self._dataset.options().experimental_distribute.auto_shard_policy
        return self._extended._communicator is None or policy not in (AutoShardPolicy.OFF, AutoShardPolicy.HINT)

    def _is_rebatched(self) -> bool:
        """Return whether replica i has equally many rows of each batch, and the numbers of rows differ by 1 at most."""
        policy = self._dataset.options().experimental_distribute.auto_shard_policy
        is_in_process = self._extended._communicator is None
        return is_in_process and policy not in (AutoShardPolicy.AUTO, AutoShardPolicy.DATA)

    @property
    def element_spec(self) -> Any:
        """The description of the elements, for each replica of this process; see ``tf.data.Dataset.element_spec``."""
        size = self._extended._num_replicas
        return _spec_of_replicas(self._extended, map_components(partial(_share, size), self._dataset.element_spec))

    def _elements(self) -> Iterator[Any]:
        if not self._is_shared():
            own_rows = self._dataset._of(self._unshared, UNKNOWN_CARDINALITY)
            yield from DistributedDatasetsFromFunction([own_rows], self._extended)
            return
        size, own = self._extended._num_replicas, self._extended._local_replicas
        is_rebatched = self._is_rebatched()
        ends: list[int] = []
        for batch in self._dataset:
            if size > 1 and not (ends and is_rebatched):
                ends = _ends(batch, size, is_rebatched)
            parts = _parts(batch, ends) if size > 1 else [batch]
            yield _of_replicas(self._extended, [parts[replica] for replica in own])

    def _unshared(self) -> Iterator[Any]:
        """Return the rows of all batches in parts of the replicas' sizes, in turn, beginning with the own replica's."""
        size, place = self._extended._num_replicas, self._extended._local_replicas[0]
        most, lengths = 0, [0]
        for batch in self._dataset:
            rows = _rows(batch, size)
            if rows > most:
                ends = _ends(batch, size, is_balanced=True)
                shares = [end - start for start, end in pairwise([0, *ends])]
                most, lengths = rows, shares[place:] + shares[:place]
            ends = [end for end, length in zip(accumulate(lengths), lengths, strict=True) if end - length < rows]
            yield from _parts(batch, ends)


class DistributedDatasetsFromFunction(_Described):
    """A dataset per process, whose elements the replicas take in turn, or a dataset for each replica of this process.

    If a replica has no element left but other replicas do, its element has no rows; if all shapes are known, the other
    replicas' elements are left out instead. With several workers, the dataset ends when no worker has an element left:
    every worker takes part in each step.
    """

    def __init__(self, datasets: list[Any], extended: Any) -> None:
        """Distribute a dataset, or one for each replica of this process; ``extended`` is the strategy's."""
        self._datasets, self._extended = [_require_dataset(dataset) for dataset in datasets], extended
        self._dataset = self._datasets[0]

    def __iter__(self) -> DistributedIterator:
        asked: list[bool] = []
        return DistributedIterator(self._elements(asked), lambda: self.element_spec, asked)

    @property
    def element_spec(self) -> Any:
        """The description of the elements, for each replica of this process; see ``tf.data.Dataset.element_spec``."""
        return _spec_of_replicas(self._extended, self._dataset.element_spec)

    def _elements(self, asked: list[bool]) -> Iterator[Any]:
        own = self._extended._local_replicas
        waiting = [iter(dataset) for dataset in self._datasets]
        sources = waiting if len(waiting) == len(own) else waiting * len(own)
        example: Any = None
        while True:
            found = [element for source in sources for element in islice(source, 1)]
            if not self._someone_has(found) or (len(found) < len(own) and self._ends_whole(asked)):
                return
            example = found[0] if found else example
            if example is None:
                example = next(iter(self._dataset), None)
            if example is None:
                raise ArgumentValueError(
                    "the dataset of this process has no element, and other workers' have: should have one at least, "
                    "whose parts without rows its replicas are given"
                )
            found += [map_components(_without_rows, example)] * (len(own) - len(found))
            yield _of_replicas(self._extended, found)

    def _ends_whole(self, asked: list[bool]) -> bool:
        """Return whether elements are left out if some replica has none, which is so if their shapes are known.

        A ``tf.function``, and a caller that requests an optional, receive these elements nevertheless.
        """
        if asked or stack.is_in_function() or self._extended._communicator is not None:
            return False
        return all(map(_is_of_known_length, components(self._dataset.element_spec)))

    def _someone_has(self, found: list[Any]) -> bool:
        communicator = self._extended._communicator
        if communicator is None:
            return bool(found)
        return bool(communicator.all_reduce(torch.tensor(len(found)), "max").wait())


def _require_dataset(dataset: Any) -> Dataset:
    if not isinstance(dataset, Dataset):
        raise ArgumentTypeError(f"dataset is a {type(dataset).__name__}, should be a tf.data.Dataset")
    return dataset


def distribute_batch(extended: Any, batch: Any) -> Any:
    """Return one batch as an element of a ``DistributedDataset``: each replica of this process has its rows."""
    size = extended._num_replicas
    parts = [batch] if size == 1 else _parts(batch, _ends(batch, size))
    return _of_replicas(extended, [parts[replica] for replica in extended._local_replicas])


def _of_replicas(extended: Any, parts: list[Any]) -> Any:
    """Return ``PerReplica`` leaves, or plain leaves if there is only one replica overall."""
    return parts[0] if extended._num_replicas == 1 else regroup(parts, always_wrap=True)


def _spec_of_replicas(extended: Any, element_spec: Any) -> Any:
    """Return a ``PerReplicaSpec`` for each component, or plain specs if there is only one replica overall."""
    if extended._num_replicas == 1:
        return element_spec
    if extended._communicator is not None:
        element_spec = map_components(_of_any_length, element_spec)
    return map_components(lambda spec: PerReplicaSpec(*[spec] * len(extended._local_replicas)), element_spec)


def _is_of_known_length(spec: TensorSpec) -> bool:
    """Return whether a shape is known; for ragged and sparse tensors, only the first length has to be."""
    if isinstance(spec, RaggedTensorSpec | SparseTensorSpec):
        return not spec.shape.rank or spec.shape[0] is not None
    return spec.shape.is_fully_defined()


def _of_any_length(spec: TensorSpec) -> TensorSpec:
    """Return the description of rows, of which a different worker may have fewer."""
    return spec.reshaped([None, *spec.shape[1:]]) if spec.shape.rank else spec


def _share(size: int, spec: TensorSpec) -> TensorSpec:
    """Return the description of one replica's rows of a batch."""
    rows = spec.shape[0] if spec.shape.rank else None
    length = None if rows is None or rows % size else rows // size
    return spec.reshaped([length, *spec.shape[1:]]) if spec.shape.rank else spec


def _ends(batch: Any, size: int, is_balanced: bool = False) -> list[int]:
    """Return the rows of a batch at which the replicas' parts end."""
    rows = _rows(batch, size)
    most, left = (rows // size, rows % size) if is_balanced else (math.ceil(rows / size), 0)
    return [most * place + min(place, left) for place in range(1, size + 1)]


def _rows(batch: Any, size: int) -> int:
    """Return the number of rows of a batch for ``size`` replicas."""
    leaves = components(batch)
    if any(leaf.dim() == 0 for leaf in leaves):
        raise ArgumentIndexError(
            f"the dataset's elements are scalars, which {size} replicas cannot share: batch it before it is distributed"
        )
    rows: int = leaves[0].shape[0]
    return rows


def _parts(batch: Any, ends: list[int]) -> list[Any]:
    return [
        map_components(lambda leaf: leaf[start:end], batch)  # noqa: B023
        for start, end in pairwise([0, *ends])
    ]


def _without_rows(leaf: Any) -> Any:
    if leaf.dim():
        return leaf[:0]
    return empty_strings(()) if isinstance(leaf, StringTensor) else torch.zeros_like(leaf)
