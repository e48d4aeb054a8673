"""Programs that read data: samplers, transforms, collators and loaders of ``megengine.data``."""

from __future__ import annotations

import importlib
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.adapters.megengine.tutorials import files


def _modules(mge: Any) -> tuple[Any, Any, Any]:
    names = ("data", "data.dataset", "data.transform")
    data, dataset, transform = (importlib.import_module(f"{mge.__name__}.{name}") for name in names)
    return data, dataset, transform


def sampled(mge: Any) -> Any:
    """List the batches of two epochs, of several ranks."""
    data, dataset, _ = _modules(mge)
    numbers = dataset.ArrayDataset(np.arange(23))
    cases: list[dict[str, Any]] = [
        {"batch_size": 3, "seed": 3},
        {"batch_size": 4, "drop_last": True, "seed": 3},
        {"batch_size": 2, "world_size": 4, "rank": 1},
        {"batch_size": 5, "world_size": 2, "rank": 1, "seed": 7},
    ]
    results = []
    for kind in (data.RandomSampler, data.SequentialSampler, data.ReplacementSampler):
        for case in cases:
            own = {key: value for key, value in case.items() if key != "seed" or kind is not data.SequentialSampler}
            sampler = kind(numbers, **own)
            results.append([len(sampler), list(sampler), list(sampler)])
    chosen = data.RandomSampler(numbers, batch_size=2, indices=[5, 7, 9], seed=1)
    weighted = data.ReplacementSampler(numbers, batch_size=4, num_samples=8, weights=[1.0] * 22 + [50.0], seed=1)
    endless = data.Infinite(data.SequentialSampler(numbers, batch_size=10))
    return [results, list(chosen), list(weighted), [next(endless) for _ in range(5)], len(endless), endless.batch_size]


def transformed(mge: Any) -> Any:
    """Change an image, in float32 and, if nothing is interpolated, in uint8."""
    t = _modules(mge)[2]
    np.random.seed(0)
    image = np.random.randint(0, 255, (5, 6, 3)).astype("uint8")
    exact = [t.Pad(2), t.Pad(1, 5), t.Pad((1, 2), 7), t.Pad((1, 2, 3, 0), (1, 2, 3)), t.Pad(1, 0.5), t.CenterCrop(3)]
    exact += [t.RandomCrop(4, padding_size=2), t.RandomCrop((7, 9)), t.RandomHorizontalFlip(), t.RandomVerticalFlip()]
    exact += [t.Normalize(1.0, 2.0), t.Normalize([1, 2, 3], [4, 5, 6]), t.ToMode(), t.Resize((3, 4), 0)]
    exact += [t.Compose([t.RandomHorizontalFlip(), t.RandomCrop(3), t.ToMode("CHW")], shuffle_indices=[(1, 2)])]
    floats = [t.Resize((3, 4)), t.Resize((9, 7)), t.Resize(4), t.Resize((4, 4), 2), t.RandomResizedCrop(4)]
    changed = [each.apply(image) for each in exact]
    return [changed, [each.apply(image.astype("float32")) for each in [*exact, *floats]]]


def collated(mge: Any) -> Any:
    """Make batches of samples of several kinds."""
    collator = _modules(mge)[0].Collator()
    samples = [[1, 2], [1.0, 2.0], ["a", "b"], [np.float32(1), np.float32(2)], [{"a": 1}, {"a": 2}], [True, False]]
    return [collator.apply(found) for found in [*samples, [(1, 2.0), (3, 4.0)], [np.zeros(2), np.ones(2)]]]


def loaded_in_batches(mge: Any) -> Any:
    """Read batches, as arrays and as tensors."""
    data, dataset, transform = _modules(mge)
    random.seed(0)
    np.random.seed(0)
    images = np.arange(5 * 4 * 4 * 3, dtype="uint8").reshape(5, 4, 4, 3)
    pairs = dataset.ConcatDataset([dataset.ArrayDataset(images, np.arange(5)), dataset.ArrayDataset(images, range(5))])
    change = transform.Compose([transform.RandomCrop(2), transform.ToMode()], order=("image", "image_category"))
    loader = data.DataLoader(pairs, data.RandomSampler(pairs, batch_size=4, seed=1), change)
    return [len(loader), list(loader), list(data.DataLoader(pairs, preload=True))[:2], pairs[-1]]


def from_files(mge: Any) -> Any:
    """Read MNIST's and CIFAR10's files."""
    dataset = _modules(mge)[1]
    results = []
    with tempfile.TemporaryDirectory() as folder:
        files.write(Path(folder))
        for kind in (dataset.MNIST, dataset.CIFAR10):
            for is_train in (True, False):
                found = kind(folder, train=is_train, download=False)
                image, label = found[3]
                results.append([len(found), image[::9, ::9], int(label), str(label.dtype), list(found.order)])
    return results


ALL: dict[str, Callable[[Any], Any]] = {
    program.__name__: program for program in (sampled, transformed, collated, loaded_in_batches, from_files)
}
