"""``CIFAR10`` and ``CIFAR100`` (source: MegEngine 1.13.0, ``megengine.data.dataset.vision.cifar``)."""

from __future__ import annotations

import pickle
import tarfile
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from collshim.megengine.data.dataset.vision.meta_vision import VisionDataset, folder_of, no_download


class CIFAR10(VisionDataset):
    """Photographs in ten classes: a sample is a BGR image, (32, 32, 3) in uint8, and its class in int32.

    Args:
        root: the folder that contains ``raw_file_dir``, or the archive ``raw_file_name``, which is then unpacked there;
            ``~/.cache/megengine/CIFAR10`` for None. Unpickling executes code from the files.
        train: True for the training set, False for the test set.
        download: if files are missing: True raises a RuntimeError, as nothing is downloaded; False raises a ValueError.
        timeout: has no effect.
    """

    raw_file_name = "cifar-10-python.tar.gz"
    raw_file_dir = "cifar-10-batches-py"
    train_batch: tuple[str, ...] = ("data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5")
    test_batch: tuple[str, ...] = ("test_batch",)
    meta_info: ClassVar[dict[str, str]] = {"name": "batches.meta"}
    _labels: tuple[bytes, ...] = (b"labels",)

    def __init__(self, root: str | None = None, train: bool = True, download: bool = True, timeout: int = 500) -> None:
        super().__init__(root, order=("image", "image_category"))
        folder = folder_of(self, root)
        self.root, self.timeout = str(folder), timeout
        self._folder = folder / self.raw_file_dir
        self.target_file = str(self._folder)
        archive = folder / self.raw_file_name
        if not self._folder.exists() and archive.exists():
            with tarfile.open(archive) as packed:
                packed.extractall(folder, filter="data")
        if not self._folder.exists():
            raise no_download(self, folder, [self.raw_file_dir, self.raw_file_name], download)
        self.arrays = self.bytes2array(self.train_batch if train else self.test_batch)

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        return tuple(array[index] for array in self.arrays)

    def __len__(self) -> int:
        return len(self.arrays[0])

    @property
    def meta(self) -> Any:
        """The dictionary with the names of the classes."""
        return _read(self._folder / self.meta_info["name"])

    def bytes2array(self, filenames: tuple[str, ...]) -> tuple[Any, ...]:
        """Return the images of these files, and their classes."""
        parts = [_read(self._folder / name) for name in filenames]
        rows = np.concatenate([part[b"data"] for part in parts]).reshape(-1, 3, 32, 32)
        images = np.ascontiguousarray(rows[:, ::-1].transpose(0, 2, 3, 1))
        return images, *(np.concatenate([part[name] for part in parts]).astype(np.int32) for name in self._labels)


class CIFAR100(CIFAR10):
    """Photographs in a hundred classes: like ``CIFAR10``, but a sample has a fine class and a coarse class."""

    raw_file_name = "cifar-100-python.tar.gz"
    raw_file_dir = "cifar-100-python"
    train_batch = ("train",)
    test_batch = ("test",)
    meta_info: ClassVar[dict[str, str]] = {"name": "meta"}
    _labels = (b"fine_labels", b"coarse_labels")


def _read(path: Path) -> Any:
    with path.open("rb") as file:
        return pickle.load(file, encoding="bytes")
