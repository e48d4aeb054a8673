"""``megengine.data`` beyond what MegEngine's recorded results show: workers, streams, refusals."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import collshim
from collshim.megengine import data
from collshim.megengine.data import DataLoader, dataset, transform
from collshim.megengine.data.dataloader import get_worker_info
from tests.adapters.conftest import Run, each_of

NUMBERS = dataset.ArrayDataset(np.arange(10), np.arange(10.0))


class Squares(dataset.StreamDataset):
    """Squares below a hundred, from this worker's number on in the workers' steps."""

    def __init__(self) -> None: ...

    def __iter__(self) -> Iterator[tuple[int]]:
        worker = get_worker_info()
        first, step = (worker.idx, worker.worker) if worker else (0, 1)
        return ((number * number,) for number in range(first, 10, step))


class Faulty(dataset.ArrayDataset):
    def __getitem__(self, index: int) -> Any:
        raise KeyError(f"no sample {index}")


@each_of(2, gives=[[[[0, 2], [4, 6], [8]], [[0, 2], [4, 6], [8]]], [[[1, 3], [5, 7], [9]], [[1, 3], [5, 7], [9]]]])
def test_each_rank_reads_its_part_in_any_epoch() -> Any:
    loader = DataLoader(NUMBERS, data.SequentialSampler(NUMBERS, batch_size=2))
    return [[batch[0].tolist() for batch in loader] for _ in range(2)]


def dealt() -> list[int]:
    return [index for batch in data.RandomSampler(NUMBERS) for index in batch]


def test_ranks_draw_one_order_without_a_seed(run: Run) -> None:
    first, second = run(dealt, 2)
    assert sorted(first + second) == list(range(10))


@pytest.mark.processes
def test_workers_read_in_the_same_order() -> None:
    def read(workers: int) -> list[Any]:
        sampler = data.RandomSampler(NUMBERS, batch_size=3, seed=2)
        loader = DataLoader(NUMBERS, sampler, num_workers=workers)
        return [[part.tolist() for part in batch] for _ in range(2) for batch in loader]

    assert read(2) == read(0)


@pytest.mark.processes
def test_exception_in_a_worker_is_a_runtime_error() -> None:
    with pytest.raises(RuntimeError, match=re.escape("no sample 0")):
        list(DataLoader(Faulty(np.arange(3)), num_workers=1))
    with pytest.raises(KeyError):
        list(DataLoader(Faulty(np.arange(3))))


def test_stream_ends_before_a_batch_that_is_not_full() -> None:
    loader = DataLoader(Squares(), data.StreamSampler(batch_size=4))
    assert [batch[0].tolist() for batch in loader] == [[0, 1, 4, 9], [16, 25, 36, 49]]


@pytest.mark.processes
def test_workers_read_streams_of_their_own_in_turn() -> None:
    loader = DataLoader(Squares(), data.StreamSampler(batch_size=3), num_workers=2, parallel_stream=True)
    assert [batch[0].tolist() for batch in loader] == [[0, 4, 16], [1, 9, 25], [36, 64], [49, 81]]


def test_stream_has_no_length_and_no_indices() -> None:
    with pytest.raises(AssertionError, match="does not have length"):
        len(Squares())
    with pytest.raises(AssertionError, match="by index"):
        Squares()[0]


@pytest.mark.parametrize(
    ("call", "theirs", "told"),
    [
        (lambda: data.RandomSampler(NUMBERS, batch_size=0), ValueError, "batch_size=0"),
        (lambda: data.RandomSampler(NUMBERS, batch_size=11), ValueError, "num_samples=10 and batch_size=11"),
        (lambda: data.SequentialSampler(NUMBERS, indices=5), ValueError, "indices=5"),  # type: ignore[arg-type]
        (lambda: data.ReplacementSampler(NUMBERS, weights=[1.0]), ValueError, "len(dataset)=10"),
        (lambda: DataLoader(NUMBERS, num_workers=-1), ValueError, "num_workers should not be negative"),
        (lambda: DataLoader([1, 2]), AssertionError, "Can not recognize this kind of dataset"),
        (lambda: DataLoader(NUMBERS, data.StreamSampler()), AssertionError, "do not match"),
        (lambda: dataset.ArrayDataset([1], [1, 2]), ValueError, "lengths of input arrays are inconsistent: 1, 2"),
        (lambda: dataset.ConcatDataset([]), AssertionError, "empty"),
        (lambda: transform.ToMode("HWC"), AssertionError, "HWC"),
        (lambda: transform.Compose(order=("image", "boxes")), NotImplementedError, "boxes"),
        (lambda: transform.CenterCrop(3).apply(np.ones((2, 2, 3))), AssertionError, "bigger than image"),
        (lambda: transform.Pad(1).apply(np.ones((2, 2))), ValueError, "3 dims, but got 2"),
        (lambda: transform.Resize((2, 2), 4).apply(np.ones((3, 3, 1))), ValueError, "nearest"),
        (lambda: data.Collator().apply([None]), TypeError, "NoneType"),
    ],
)
@pytest.mark.unranked
def test_wrong_arguments_are_refused(call: Callable[[], Any], theirs: type[Exception], told: str) -> None:
    with pytest.raises(theirs, match=re.escape(told)) as caught:
        call()
    assert isinstance(caught.value, collshim.CollshimError)


@pytest.mark.unranked
def test_missing_files_are_not_downloaded(tmp_path: Path) -> None:
    for kind in (dataset.MNIST, dataset.CIFAR10, dataset.CIFAR100):
        with pytest.raises(RuntimeError, match="downloads no datasets: copy the files there"):
            kind(str(tmp_path))
        with pytest.raises(ValueError, match="copy the files there"):
            kind(str(tmp_path), download=False)


@pytest.mark.unranked
def test_names_beyond_the_tutorials_are_refused() -> None:
    for module, name in ((dataset, "ImageNet"), (transform, "ColorJitter"), (data, "tools")):
        with pytest.raises(AttributeError, match=name):
            getattr(module, name)
