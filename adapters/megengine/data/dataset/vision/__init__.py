"""``megengine.data.dataset.vision``: image datasets, read from files on this machine."""

from __future__ import annotations

from collshim.adapting.absent import saying
from collshim.megengine.data.dataset.vision.cifar import CIFAR10, CIFAR100
from collshim.megengine.data.dataset.vision.meta_vision import VisionDataset
from collshim.megengine.data.dataset.vision.mnist import MNIST

__all__ = ["CIFAR10", "CIFAR100", "MNIST", "VisionDataset"]

__getattr__ = saying(__name__)
