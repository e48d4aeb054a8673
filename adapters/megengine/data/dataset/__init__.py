"""``megengine.data.dataset``."""

from __future__ import annotations

from collshim.adapting.absent import saying
from collshim.megengine.data.dataset.meta_dataset import ArrayDataset, ConcatDataset, Dataset, StreamDataset
from collshim.megengine.data.dataset.vision import CIFAR10, CIFAR100, MNIST, VisionDataset

__all__ = [
    "CIFAR10",
    "CIFAR100",
    "MNIST",
    "ArrayDataset",
    "ConcatDataset",
    "Dataset",
    "StreamDataset",
    "VisionDataset",
]

__getattr__ = saying(__name__)
