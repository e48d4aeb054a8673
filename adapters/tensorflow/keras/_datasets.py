"""Lets Keras's models read ``tf.data.Dataset``s."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from importlib import import_module
from typing import Any

import torch

from collshim.errors import ArgumentValueError
from collshim.tensorflow.data.dataset import Dataset
from collshim.tensorflow.distribute import context
from collshim.tensorflow.distribute.datasets import DistributedDataset, DistributedDatasetsFromFunction

_KINDS = (Dataset, DistributedDataset, DistributedDatasetsFromFunction)


def install() -> None:
    """Let Keras accept datasets, and shuffle arrays in the same order on all workers; call this once."""
    adapters: Any = import_module("keras.src.trainers.data_adapters")
    adapters.get_data_adapter = _adapting(adapters)


def _adapting(adapters: Any) -> Callable[..., Any]:
    get: Callable[..., Any] = adapters.get_data_adapter
    kind = _adapter_class(adapters)

    @wraps(get)
    def get_data_adapter(
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        batch_size: Any = None,
        steps_per_epoch: Any = None,
        shuffle: Any = False,
        class_weight: Any = None,
    ) -> Any:
        if not isinstance(x, _KINDS):
            found = get(x, y, sample_weight, batch_size, steps_per_epoch, shuffle, class_weight)
            return _in_one_order(found) if shuffle else found
        for name, what, value in (("y", "the targets", y), ("sample_weights", "the sample weights", sample_weight)):
            if value is not None:
                adapters.raise_unsupported_arg(name, what, "tf.data.Dataset")
        if getattr(x, "_length", 0) == -1 and steps_per_epoch is None:
            raise ArgumentValueError(
                "When passing an infinitely repeating dataset, please specify a `steps_per_epoch` value so that epoch "
                f"level callbacks continue to work. The dataset was: {x!r}"
            )
        return kind(x, class_weight)

    return get_data_adapter


def _in_one_order(adapter: Any) -> Any:
    """Let the workers of a strategy shuffle arrays in the same order, so each reads its rows of the same batches."""
    communicator = context.get_strategy().extended._communicator
    get_loader = getattr(adapter, "get_torch_dataloader", None)
    if communicator is None or get_loader is None:
        return adapter
    seed = communicator.broadcast(torch.randint(1 << 62, ()), 0).wait()
    generator = torch.Generator().manual_seed(int(seed))

    def get_torch_dataloader() -> Any:
        loader = get_loader()
        sampler = getattr(loader.batch_sampler, "sampler", None)
        if isinstance(sampler, torch.utils.data.RandomSampler):
            sampler.generator = generator
        return loader

    adapter.get_torch_dataloader = get_torch_dataloader
    return adapter


def _adapter_class(adapters: Any) -> Any:
    class DatasetAdapter(adapters.data_adapter.DataAdapter):  # type: ignore[misc]
        """Reads a dataset as batches of tensors, or of distributed values; the batches' sizes are not known."""

        batch_size = has_partial_batch = partial_batch_size = None

        def __init__(self, dataset: Any, class_weight: Any = None) -> None:
            self._dataset = dataset if class_weight is None else dataset.map(_weighting(class_weight))
            strategy = context.get_strategy()
            self._batches = self._dataset
            if isinstance(self._dataset, Dataset) and strategy.num_replicas_in_sync > 1:
                self._batches = strategy.experimental_distribute_dataset(self._dataset)

        def get_torch_dataloader(self) -> Any:
            """Return the batches."""
            return self._batches

        def get_numpy_iterator(self) -> Iterator[Any]:
            """Return an iterator over the batches of a dataset as NumPy arrays."""
            return iter(self._dataset.as_numpy_iterator())

        @property
        def num_batches(self) -> int | None:
            """The number of batches; None if it is unknown or infinite."""
            return _length(self._dataset)

    return DatasetAdapter


def _length(dataset: Any) -> int | None:
    known = dataset.cardinality() if isinstance(dataset, Dataset) else getattr(dataset, "cardinality", -1)
    return None if known < 0 else int(known)


def _weighting(class_weight: Any) -> Callable[..., Any]:
    utils: Any = import_module("keras.src.trainers.data_adapters.data_adapter_utils")

    def weighted(*data: Any) -> Any:
        x, y, sample_weight = utils.unpack_x_y_sample_weight(data)
        if sample_weight is not None:
            raise ArgumentValueError("You cannot `class_weight` and `sample_weight` at the same time.")
        return x, y, utils.class_weight_to_sample_weights(y, class_weight)

    return weighted
