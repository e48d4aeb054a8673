"""``DataLoader``, over torch's (source: MegEngine 1.13.0, ``megengine.data.dataloader``)."""

from __future__ import annotations

import multiprocessing
import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils import data

from collshim.errors import ArgumentTypeError, ArgumentValueError, also
from collshim.megengine.data.collator import Collator
from collshim.megengine.data.dataset.meta_dataset import Dataset, StreamDataset
from collshim.megengine.data.sampler import MapSampler, SequentialSampler, StreamSampler
from collshim.megengine.data.transform.meta_transform import PseudoTransform
from collshim.megengine.random._generator import generator
from collshim.megengine.tensor import Tensor

__all__ = ["DataLoader", "WorkerInfo", "get_worker_info"]


class WorkerInfo(NamedTuple):
    """A worker process's information about itself.

    Attributes:
        idx: the worker's number.
        worker: the number of workers.
        seed: the seed of ``random`` and ``numpy.random`` in the worker.
    """

    idx: int
    worker: int
    seed: int


def get_worker_info() -> WorkerInfo | None:
    """Return this worker's information; None if this process is not a worker of a ``DataLoader``."""
    found: Any = data.get_worker_info()
    return None if found is None else WorkerInfo(found.id, found.num_workers, found.dataset.seed + found.id)


class DataLoader:
    """Yield batches of a dataset, as NumPy arrays unless the collator returns another type.

    Args:
        dataset: a ``Dataset``; AssertionError for anything else.
        sampler: the indices of the batches; for None, one sample after another. AssertionError if the dataset is a
            ``StreamDataset`` and the sampler is not a ``StreamSampler``, or the reverse.
        transform: transforms the samples of each batch.
        collator: combines samples into a batch.
        num_workers: the number of processes that read batches ahead; 0 for none. The order does not change. An
            exception in a worker is raised here as a RuntimeError. ValueError if negative.
        timeout: the seconds to wait for a worker's batch before a RuntimeError; 0 for no limit. It has no effect
            without workers. ValueError if negative.
        preload: whether to convert arrays to tensors on the default device.
        parallel_stream: whether each worker reads a stream of its own, which the dataset selects by
            ``get_worker_info``; the batches come from the workers in turn, and each worker's last batch may be smaller.
            If False, this process reads the stream, even if there are workers, and leaves out a last batch that is not
            full.
    """

    def __init__(
        self,
        dataset: Any,
        sampler: Any = None,
        transform: Any = None,
        collator: Any = None,
        num_workers: int = 0,
        timeout: int = 0,
        preload: bool = False,
        parallel_stream: bool = False,
    ) -> None:
        for name, number in (("num_workers", num_workers), ("timeout", timeout)):
            if number < 0:
                raise ArgumentValueError(f"{name} should not be negative: it is {number}")
        _require(isinstance(dataset, Dataset), f"Can not recognize this kind of dataset: {type(dataset)}")
        is_stream = isinstance(dataset, StreamDataset)
        self.dataset, self.num_workers, self.timeout = dataset, num_workers, timeout
        self.preload, self.parallel_stream = preload, parallel_stream
        self.sampler: Any = sampler or (StreamSampler() if is_stream else SequentialSampler(dataset))
        _require(
            isinstance(self.sampler, StreamSampler if is_stream else MapSampler),
            f"types of dataset and sampler do not match: {type(dataset)} and {type(self.sampler)}",
        )
        self.transform = PseudoTransform() if transform is None else transform
        self.collator = Collator() if collator is None else collator

    def __iter__(self) -> Iterator[Any]:
        batches = self._batches()
        return map(_as_tensors, batches) if self.preload else batches

    def __len__(self) -> int:
        return len(self.sampler)

    def _batches(self) -> Iterator[Any]:
        if isinstance(self.dataset, StreamDataset):
            if self.num_workers and self.parallel_stream:
                return self._from_workers(_OwnStream(self), None)
            return _batches_of_stream(self, keeps_last=False)
        source = _Source(self)
        return self._from_workers(source, self.sampler) if self.num_workers else map(source.__getitem__, self.sampler)

    def _from_workers(self, source: Any, sampler: Any) -> Iterator[Any]:
        can_fork = "fork" in multiprocessing.get_all_start_methods()  # then datasets need not be picklable
        loader: Any = data.DataLoader(
            source,
            batch_size=None,
            sampler=sampler,
            num_workers=self.num_workers,
            collate_fn=_unchanged,
            timeout=self.timeout,
            worker_init_fn=_Seeds(source.seed),
            multiprocessing_context="fork" if can_fork else None,
            generator=torch.Generator(),
        )
        batches = iter(loader)
        while True:
            try:
                batch = next(batches)
            except StopIteration:
                return
            except Exception as error:
                raise RuntimeError(str(error)) from error
            yield batch


class _Source(data.Dataset[Any]):
    """A dataset's batches; the index of a batch is the list of its samples' indices."""

    def __init__(self, loader: DataLoader) -> None:
        self.dataset, self.transform, self.collator = loader.dataset, loader.transform, loader.collator
        self.seed = _drawn_seed(loader)

    def __getitem__(self, indices: Sequence[Any]) -> Any:
        items = [self.dataset[index] for index in indices]
        return self.collator.apply(self.transform.apply_batch(items))


class _OwnStream(data.IterableDataset[Any]):
    """The batches of a stream dataset that each worker reads on its own."""

    def __init__(self, loader: DataLoader) -> None:
        self.loader, self.seed = loader, _drawn_seed(loader)

    def __iter__(self) -> Iterator[Any]:
        return _batches_of_stream(self.loader, keeps_last=True)


def _batches_of_stream(loader: DataLoader, keeps_last: bool) -> Iterator[Any]:
    samples, size = iter(loader.dataset), loader.sampler.batch_size
    while batch := [loader.transform.apply(sample) for sample in islice(samples, size)]:
        if len(batch) == size or keeps_last:
            yield loader.collator.apply(batch)


class _Seeds:
    """Seeds a worker's random number generators."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def __call__(self, number: int) -> None:
        random.seed(self._seed + number)
        np.random.seed(self._seed + number)


def _drawn_seed(loader: DataLoader) -> int:
    """Draw a seed for the workers from this rank's generator, which ``megengine.random.seed`` seeds."""
    return int(torch.randint(2**31, (), generator=generator())) if loader.num_workers else 0


def _unchanged(batch: Any) -> Any:
    return batch


def _as_tensors(batch: Any) -> Any:
    """Convert the arrays in a batch to tensors, its mappings to dictionaries and its sequences to lists."""
    if isinstance(batch, np.ndarray):
        return Tensor(batch)
    if isinstance(batch, Mapping):
        return {key: _as_tensors(value) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*map(_as_tensors, batch))
    if isinstance(batch, Sequence) and not isinstance(batch, str | bytes):
        return [_as_tensors(value) for value in batch]
    return batch


def _require(holds: bool, text: str) -> None:
    if not holds:
        raise also(ArgumentTypeError, AssertionError)(text)
