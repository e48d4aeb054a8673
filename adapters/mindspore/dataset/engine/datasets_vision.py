"""``MnistDataset``, ``FashionMnistDataset``, ``Cifar10Dataset``, ``Cifar100Dataset`` (source: MindSpore 2.10.0)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from collshim.adapting.refusing import refuse
from collshim.mindspore.dataset.engine import sources
from collshim.mindspore.dataset.engine.datasets_user_defined import chosen_sampler
from collshim.mindspore.dataset.engine.mappable import MappableDataset

__all__ = ["Cifar10Dataset", "Cifar100Dataset", "FashionMnistDataset", "MnistDataset"]


class _Images(MappableDataset):
    """Images and their labels, read from the files in a folder.

    Args:
        dataset_dir: the folder.
        usage: which files are read; None for "all".
        num_samples: the maximum number of images.
        num_parallel_workers: has no effect.
        shuffle: whether the images are shuffled; None shuffles them.
        sampler: a sampler, or the indices of the images.
        num_shards: the number of shards; see DistributedSampler.
        shard_id: this shard's index.
        cache: must be None.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: there is no such folder, a number is out of range, or arguments contradict each other.
        RuntimeError: the folder has no such files, or a file has a different format.
        NotImplementedError: ``cache`` is passed.
    """

    _COLUMNS: tuple[str, ...] = ("image", "label")
    _USAGES: tuple[str, ...] = ("train", "test", "all")

    def __init__(
        self,
        dataset_dir: str,
        usage: str | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: Any = None,
    ) -> None:
        of = type(self).__name__
        if cache is not None:
            refuse(NotImplementedError, f"{of}: cache is not supported: should be None")
        if not Path(dataset_dir).is_dir():
            refuse(ValueError, f"The folder {dataset_dir} does not exist or is not a directory or permission denied!")
        if usage is not None and usage not in self._USAGES:
            refuse(ValueError, f"Input usage is not within the valid set of {list(self._USAGES)}, but got {usage!r}.")
        chosen = chosen_sampler(of, num_samples, sampler, shuffle, num_shards, shard_id)
        self._arrays = self._load(Path(dataset_dir), usage or "all")
        super().__init__(sources.Sampled(self._COLUMNS, self._row, len(self._arrays[0]), chosen))

    def _row(self, number: int) -> tuple[Any, ...]:
        return tuple(array[number] for array in self._arrays)

    def _load(self, folder: Path, usage: str) -> tuple[Any, ...]:
        """Return the images, of shape (number, height, width, channels), and the labels."""
        raise NotImplementedError(f"{type(self).__name__}._load")

    def _files(self, folder: Path, names: Sequence[str]) -> list[Path]:
        found = [path for name in names for path in sorted(folder.iterdir()) if name in path.name and path.is_file()]
        if not found:
            text = f"Please check file path or dataset API. There are no files {' or '.join(names)} in {folder}"
            refuse(RuntimeError, f"Invalid data, {type(self).__name__}: {text}")
        return found


class MnistDataset(_Images):
    """MNIST: images (28, 28, 1) of uint8 and labels of uint32, from files such as ``train-images-idx3-ubyte``.

    The arguments are those of every dataset of images: ``usage`` is "train", "test" or "all".
    """

    _classes = 10

    def _load(self, folder: Path, usage: str) -> tuple[Any, ...]:
        parts = {"train": ("train",), "test": ("t10k",), "all": ("t10k", "train")}[usage]
        images = self._files(folder, [f"{part}-images" for part in parts])
        labels = self._files(folder, [f"{part}-labels" for part in parts])
        pictures = np.concatenate([_idx(path, 2051, 3) for path in images])
        numbers = np.concatenate([_idx(path, 2049, 1) for path in labels])
        if len(pictures) != len(numbers):
            text = f"the number of images is {len(pictures)}, and of labels {len(numbers)}, in {folder}"
            refuse(RuntimeError, f"Invalid data, {text}")
        return pictures[..., None], numbers.astype(np.uint32)


class FashionMnistDataset(MnistDataset):
    """Fashion-MNIST, whose files have the same format as MNIST's."""


class Cifar10Dataset(_Images):
    """CIFAR-10: images (32, 32, 3) of uint8 and labels of uint32, from ``data_batch_1.bin`` and so on.

    The arguments are those of every dataset of images: ``usage`` is "train", "test" or "all".
    """

    _classes = 10
    _LABELS = 1
    _FILES: ClassVar = {"train": ("data_batch",), "test": ("test_batch",), "all": ("data_batch", "test_batch")}

    def _load(self, folder: Path, usage: str) -> tuple[Any, ...]:
        width = self._LABELS + 3072
        files = [path for path in self._files(folder, self._FILES[usage]) if path.suffix == ".bin"]
        contents = [np.frombuffer(path.read_bytes(), np.uint8) for path in sorted(files)]
        for path, content in zip(sorted(files), contents, strict=True):
            if len(content) % width:
                text = f"{path} has {len(content)} bytes, which should be a multiple of {width}"
                refuse(RuntimeError, f"Invalid data, {text}")
        whole = np.concatenate(contents).reshape(-1, width)
        pictures = whole[:, self._LABELS :].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        labels = (whole[:, place].astype(np.uint32) for place in range(self._LABELS))
        return np.ascontiguousarray(pictures), *labels


class Cifar100Dataset(Cifar10Dataset):
    """CIFAR-100: images, coarse and fine labels, from ``train.bin`` and ``test.bin``; otherwise like CIFAR-10."""

    _COLUMNS = ("image", "coarse_label", "fine_label")
    _classes = 100
    _LABELS = 2
    _FILES: ClassVar = {"train": ("train",), "test": ("test",), "all": ("train", "test")}


def _idx(path: Path, magic: int, axes: int) -> np.ndarray[Any, Any]:
    """Return the numbers of an IDX file."""
    content = path.read_bytes()
    header = np.frombuffer(content[: 4 + 4 * axes], ">u4")
    body = np.frombuffer(content, np.uint8, offset=min(4 + 4 * axes, len(content)))
    if len(header) != 1 + axes or header[0] != magic or len(body) != np.prod(header[1:], dtype=np.int64):
        text = f"{path} should begin with {magic} and {axes} lengths that fit its size, but has {header.tolist()}"
        refuse(RuntimeError, f"Invalid file, {text} and {len(body)} bytes")
    return body.reshape(header[1:])
