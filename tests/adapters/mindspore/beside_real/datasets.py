"""Datasets whose rows are recorded with the real MindSpore; each case is an expression."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

EXPRESSIONS = (
    *(f"slices({n}, shuffle=False, num_shards={s}, shard_id={s - 1})" for n in (1, 5, 10) for s in (2, 3, 4)),
    *(f"slices(10, shuffle=False, num_shards=3, shard_id=1, num_samples={n})" for n in (2, 4, 20)),
    "slices(10, shuffle=False, num_samples=3)",
    "seeded(1) and slices(1000)",
    "seeded(2) and slices(11, num_shards=2, shard_id=1)",
    "seeded(3) and slices(10, num_samples=4)",
    "seeded(4) and slices(10, sampler=ds.RandomSampler(num_samples=4))",
    "seeded(5) and slices(10, sampler=ds.SubsetRandomSampler([5, 3, 1, 8]))",
    "ms.set_seed(6) or slices(10)",
    "slices(10, sampler=ds.SequentialSampler(3, 4))",
    "slices(10, sampler=ds.SubsetSampler([5, 3, 1]))",
    "slices(10, sampler=ds.DistributedSampler(4, 1, shuffle=False, num_samples=2))",
    "seeded(7) and slices(10, sampler=ds.DistributedSampler(4, 1))",
    "slices(10, sampler=[4, 2])",
    "slices(10, shuffle=False).batch(3)",
    "slices(10, shuffle=False).batch(3, drop_remainder=True)",
    "slices(10, shuffle=False).batch(3).repeat(2)",
    "slices(10, shuffle=False).repeat(2).batch(3)",
    "slices(10, shuffle=False).skip(2).take(5)",
    "slices(10, shuffle=False).skip(12)",
    "slices(4, shuffle=False).map(lambda x: x * 2)",
    "pairs().map(lambda x: x + 0.5, input_columns=['x'])",
    "pairs().map([lambda x, y: (x * y, x), lambda a, b: (a + b, a)], ['x', 'y'], ['a', 'b'])",
    "pairs().map(lambda x: (x, x + 1), ['x'], ['a', 'b'])",
    "pairs().map(lambda x, y: x + y, ['x', 'y'], ['a'])",
    "pairs().map(lambda y: y * 2, 'y').batch(2)",
    "pairs().project(['y'])",
    "pairs().rename(['x'], ['z'])",
    "pairs().filter(lambda x, y: y > 1)",
    "pairs().filter(lambda x: x < 2, input_columns=['x'])",
    "ds.zip((pairs(), slices(3, shuffle=False)))",
    "slices(3, shuffle=False) + slices(2, shuffle=False)",
    "ds.NumpySlicesDataset({'a': [1, 2], 'b': [[0.5], [1.5]]}, shuffle=False)",
    "ds.NumpySlicesDataset(([1, 2], [3, 4]), shuffle=False)",
    "ds.GeneratorDataset(lambda: iter([(1, 2.5), (3, 4.5)]), ['a', 'b'], num_samples=1)",
    "ds.GeneratorDataset(lambda: iter([(1, 2.5), (3, 4.5)]), ['a', 'b'], [ms.int64, ms.float64])",
    "ds.GeneratorDataset([np.float32(1), np.float32(2)], 'a', shuffle=False)",
    "ds.MnistDataset(folder('mnist'), shuffle=False)",
    "ds.MnistDataset(folder('mnist'), usage='train', shuffle=False, num_shards=2, shard_id=1)",
    "ds.MnistDataset(folder('mnist'), 'test', num_samples=2, shuffle=False).batch(2)",
    "ds.Cifar10Dataset(folder('cifar10'), 'test', num_samples=2, shuffle=False, num_shards=3, shard_id=2)",
    "ds.Cifar100Dataset(folder('cifar100'), 'test', num_samples=2, shuffle=False)",
    "images().map(vision.Rescale(1 / 255.0, -0.5), 'image')",
    "images().map(vision.HWC2CHW(), 'image')",
    "images().map([vision.Rescale(1 / 255.0, 0), vision.Normalize((0.13,), (0.31,)), vision.HWC2CHW()], 'image')",
    "images(3).map(vision.Normalize([120.0, 115.0, 100.0], [70.0, 68.0, 71.0]), 'image')",
    "images(3).map([vision.HWC2CHW(), vision.Normalize([120.0, 115.0, 100.0], [70.0, 68.0, 71.0], False)], 'image')",
    "images(3).map(vision.ToTensor(), 'image')",
    *(f"images(3).map(vision.CenterCrop({size}), 'image')" for size in ((4, 5), 3, (5, 4), (4, 8), (9, 9), (11, 4))),
    "images(3).map(vision.RandomHorizontalFlip(1.0), 'image')",
    "images(3).map(vision.RandomVerticalFlip(1.0), 'image')",
    "images(3).map(vision.RandomCrop((6, 7)), 'image')",
    "images(3).map(vision.RandomCrop((10, 11), padding=2, fill_value=7), 'image')",
    "images().map(transforms.Compose([vision.Rescale(2.0, 1.0), vision.HWC2CHW()]), 'image')",
    "images().map(transforms.TypeCast(ms.int32), 'label')",
    "images().map(transforms.TypeCast(np.float16), 'image')",
    "images().map(transforms.OneHot(7), 'label')",
    "images().map(transforms.OneHot(7, 0.1), 'label')",
    *(
        f"images({channels}).map(vision.Resize({size}, vision.Inter.{inter}), 'image')"
        for channels in (1, 3)
        for size in ((12, 9), (3, 5), 9, (6, 14))
        for inter in ("LINEAR", "NEAREST")
    ),
    "images(3).map([vision.Rescale(1.0, 0.25), vision.Resize((9, 5))], 'image')",
)


def write_mnist(folder: Path, train: int, test: int) -> None:
    """Write MNIST's files with so many images: noise, and the label in the brightness of some rows."""
    random = np.random.RandomState(0)
    for part, count in (("train", train), ("t10k", test)):
        labels = random.randint(0, 10, count).astype(np.uint8)
        pictures = random.randint(0, 128, (count, 28, 28)).astype(np.uint8)
        for picture, label in zip(pictures, labels, strict=True):
            picture[2 * label : 2 * label + 4] += 100
        sizes = b"".join(number.to_bytes(4, "big") for number in (2051, count, 28, 28))
        (folder / f"{part}-images-idx3-ubyte").write_bytes(sizes + pictures.tobytes())
        sizes = b"".join(number.to_bytes(4, "big") for number in (2049, count))
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(sizes + labels.tobytes())


def _write(folder: Path) -> None:
    """Write small files of the forms that datasets are published in."""
    random = np.random.RandomState(0)
    for name in ("mnist", "cifar10", "cifar100"):
        (folder / name).mkdir()
    write_mnist(folder / "mnist", 5, 3)
    (folder / "cifar10/test_batch.bin").write_bytes(_records(random, 1))
    (folder / "cifar100/test.bin").write_bytes(_records(random, 2))


def _records(random: Any, labels: int) -> bytes:
    """Return ten thousand records, the only number that MindSpore reads; ten of them, again and again."""
    rows = random.randint(0, 256, (10, labels + 3072)).astype(np.uint8)
    rows[:, :labels] %= 10
    return bytes(rows.tobytes()) * 1000


def _names(ms: Any, folder: Path) -> dict[str, Any]:
    ds = ms.dataset
    ds.config.set_seed(5489)
    pictures = np.random.RandomState(1).randint(0, 256, (2, 6, 7, 3)).astype(np.uint8)

    def images(channels: int = 1) -> Any:
        labels = np.array([3, 6], np.int32)
        return ds.NumpySlicesDataset((pictures[..., :channels], labels), ["image", "label"], shuffle=False)

    return {
        "ds": ds,
        "ms": ms,
        "np": np,
        "vision": ds.vision,
        "transforms": ds.transforms,
        "folder": lambda name: str(folder / name),
        "seeded": lambda seed: ds.config.set_seed(seed) or True,
        "slices": lambda count, **arguments: ds.NumpySlicesDataset(np.arange(count), **arguments),
        "pairs": lambda: ds.NumpySlicesDataset((np.arange(3.0), np.arange(3) * 2), ["x", "y"], shuffle=False),
        "images": images,
    }


def _observed(expression: str, ms: Any) -> dict[str, Any]:
    """Return the rows of two epochs by column, and what the dataset says of itself."""
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder))
        dataset = eval(expression, _names(ms, Path(folder)))
        names = dataset.get_col_names()
        rows = dataset.create_tuple_iterator(num_epochs=2, output_numpy=True)
        found: dict[str, Any] = {}
        for epoch in range(2):
            for number, row in enumerate(rows):
                found |= {f"{epoch} {number} {name}": array for name, array in zip(names, row, strict=True)}
        sizes = (dataset.get_dataset_size(), dataset.get_batch_size(), dataset.get_repeat_count())
    return {**found, "names": np.array(names), "size, batch, repeat": np.array(sizes)}


def cases() -> Iterator[tuple[str, Callable[[Any], dict[str, Any]]]]:
    """Yield names and functions of MindSpore's package that return arrays by name."""
    for expression in EXPRESSIONS:
        yield expression, partial(_observed, expression)
