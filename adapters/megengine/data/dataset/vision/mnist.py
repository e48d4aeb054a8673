"""``MNIST`` (source: MegEngine 1.13.0, ``megengine.data.dataset.vision.mnist``)."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np

from collshim.megengine.data.dataset.vision.meta_vision import VisionDataset, folder_of, no_download


class MNIST(VisionDataset):
    """Handwritten digits: a sample is an image, (28, 28, 1) in uint8, and its digit in int32.

    Args:
        root: the folder with the four files of ``raw_file_name``; ``~/.cache/megengine/MNIST`` for None.
        train: True for the training set, False for the test set.
        download: if files are missing: True raises a RuntimeError, as nothing is downloaded; False raises a ValueError.
    """

    raw_file_name = (
        "train-images-idx3-ubyte.gz",
        "train-labels-idx1-ubyte.gz",
        "t10k-images-idx3-ubyte.gz",
        "t10k-labels-idx1-ubyte.gz",
    )

    def __init__(self, root: str | None = None, train: bool = True, download: bool = True) -> None:
        super().__init__(root, order=("image", "image_category"))
        folder = folder_of(self, root)
        self.root = str(folder)
        missing = [name for name in self.raw_file_name if not (folder / name).exists()]
        if missing:
            raise no_download(self, folder, missing, download)
        images, labels = self.raw_file_name[:2] if train else self.raw_file_name[2:]
        (magic, count, height, width), pixels = _read(folder / images, 4)
        (label_magic, label_count), digits = _read(folder / labels, 2)
        self._meta_data = {
            "images": {"magic": magic, "imgs": count, "height": height, "width": width},
            "labels": {"magic": label_magic, "imgs": label_count},
        }
        self.arrays = (pixels.reshape(count, height, width, 1), digits.astype(np.int32))

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        return tuple(array[index] for array in self.arrays)

    def __len__(self) -> int:
        return len(self.arrays[0])

    @property
    def meta(self) -> dict[str, dict[str, int]]:
        """The headers of the two files."""
        return self._meta_data


def _read(path: Path, numbers: int) -> tuple[tuple[int, ...], np.ndarray[Any, Any]]:
    """Return the numbers in a file's header, and the bytes after it."""
    with gzip.open(path, "rb") as file:
        content = file.read()
    form = f">{numbers}i"
    return struct.unpack_from(form, content), np.frombuffer(content, np.uint8, offset=struct.calcsize(form)).copy()
