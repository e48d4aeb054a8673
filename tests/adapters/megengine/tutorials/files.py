"""Small files of random images in the forms of MNIST and CIFAR10."""

from __future__ import annotations

import gzip
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np

MNIST = {"train": ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"),
         "test": ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz")}  # fmt: skip


def write(folder: Path) -> None:
    """Write 256 digits and 64 to test; 80 photographs and 32 to test."""
    numbers = np.random.RandomState(0)
    patterns = numbers.randint(0, 200, (10, 28, 28))
    for (images, labels), count in zip(MNIST.values(), (256, 64), strict=True):
        digits = numbers.randint(0, 10, count)
        pixels = (patterns[digits] + numbers.randint(0, 56, (count, 28, 28))).astype(np.uint8)
        _write(folder / images, struct.pack(">4i", 2051, count, 28, 28) + pixels.tobytes())
        _write(folder / labels, struct.pack(">2i", 2049, count) + digits.astype(np.uint8).tobytes())
    inner = folder / "cifar-10-batches-py"
    inner.mkdir()
    colors = np.repeat(numbers.randint(0, 200, (10, 3)), 1024, axis=1)
    for name, count in [*((f"data_batch_{number}", 16) for number in range(1, 6)), ("test_batch", 32)]:
        classes = numbers.randint(0, 10, count)
        rows = (colors[classes] + numbers.randint(0, 56, (count, 3072))).astype(np.uint8)
        _dump(inner / name, {b"data": rows, b"labels": classes.tolist()})
    _dump(inner / "batches.meta", {b"label_names": [b"class"] * 10})


def _write(path: Path, content: bytes) -> None:
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(content)


def _dump(path: Path, content: Any) -> None:
    path.write_bytes(pickle.dumps(content, protocol=2))
