"""``mindspore.dataset``: readers, samplers and operations on rows (source: MindSpore 2.10.0)."""

from __future__ import annotations

from collshim.adapting.absent import saying
from collshim.adapting.refusing import refuse
from collshim.mindspore.dataset import transforms, vision
from collshim.mindspore.dataset.core import config
from collshim.mindspore.dataset.engine.datasets import Dataset
from collshim.mindspore.dataset.engine.datasets_user_defined import GeneratorDataset, NumpySlicesDataset
from collshim.mindspore.dataset.engine.datasets_vision import (
    Cifar10Dataset,
    Cifar100Dataset,
    FashionMnistDataset,
    MnistDataset,
)
from collshim.mindspore.dataset.engine.samplers import (
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    Shuffle,
    SubsetRandomSampler,
    SubsetSampler,
)

__all__ = [
    "Cifar10Dataset",
    "Cifar100Dataset",
    "Dataset",
    "DistributedSampler",
    "FashionMnistDataset",
    "GeneratorDataset",
    "MnistDataset",
    "NumpySlicesDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "Shuffle",
    "SubsetRandomSampler",
    "SubsetSampler",
    "config",
    "transforms",
    "vision",
    "zip",
]


def zip(datasets: tuple[Dataset, ...]) -> Dataset:
    """Return a dataset with the columns of all these datasets, and as many rows as the shortest has.

    Raises:
        TypeError: ``datasets`` is not a tuple of datasets.
        ValueError: ``datasets`` is empty.
    """
    if not isinstance(datasets, tuple) or not all(isinstance(dataset, Dataset) for dataset in datasets):
        refuse(TypeError, f"Argument datasets should be a tuple of datasets, but got {type(datasets)}")
    if not datasets:
        refuse(ValueError, "Argument datasets should not be empty")
    return datasets[0].zip(datasets[1:])


__getattr__ = saying(__name__, "read the data with Python, and pass it to GeneratorDataset")
