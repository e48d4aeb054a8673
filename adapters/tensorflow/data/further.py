"""Methods of a dataset that draw, resample, save, load and pass over elements. Source: TensorFlow 2.21, run on CPU."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from collshim.errors import ArgumentTypeError
from collshim.tensorflow.composites import RaggedTensor
from collshim.tensorflow.constants import constant
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.data.arguments import call, require_function, whole
from collshim.tensorflow.data.elements import Elements
from collshim.tensorflow.data.structure import map_components
from collshim.tensorflow.errors import NotFoundError, OpError, invalid_argument
from collshim.tensorflow.io.files import matching_files
from collshim.tensorflow.specs import RaggedTensorSpec, TensorSpec
from collshim.tensorflow.tensor import adopt, plain

_UNKNOWN = -2
_FILE = "elements.pt"


class Further(Elements):
    """Methods that draw, resample, save, load and pass over elements."""

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Any:
        """Return the elements that can be computed, without those whose computation raises one of ``tf.errors``."""
        return self._of(lambda: _without_errors(iter(self)), _UNKNOWN)

    def ragged_batch(
        self,
        batch_size: Any,
        drop_remainder: bool = False,
        row_splits_dtype: Any = torch.int64,
        name: str | None = None,
    ) -> Any:
        """Return batches of elements as ragged tensors, whose axis 1 is the elements' axis 0.

        Elements are stacked if their description has no unknown length, and those of a batch have the same shape.
        ``row_splits_dtype`` has no effect.

        Raises:
            InvalidArgumentError: the size is below 1; in the iteration, if the elements of a batch differ in another
                axis than axis 0.
        """
        size = whole(batch_size)
        if size < 1:
            raise invalid_argument("Batch size must be greater than zero.")

        def batches() -> Iterator[Any]:
            waiting = iter(self)
            while several := list(itertools.islice(waiting, size)):
                if len(several) == size or not drop_remainder:
                    yield map_components(_batch, self.element_spec, *several)

        def spec() -> Any:
            length = size if drop_remainder else None
            return map_components(lambda one: _batch_spec(one, length), self.element_spec)

        count, rest = divmod(self._length, size)
        full = count if drop_remainder or not rest else count + 1
        return self._of(batches, full if self._length >= 0 else self._length, spec)

    def rejection_resample(
        self,
        class_func: Callable[..., Any],
        target_dist: Any,
        initial_dist: Any = None,
        seed: int | None = None,
        name: str | None = None,
    ) -> Any:
        """Return pairs of a class and an element, some of which are left out so that classes have other frequencies.

        Args:
            class_func: returns an element's class, an integer.
            target_dist: the wanted frequency of each class.
            initial_dist: the frequencies in this dataset; if None, they are counted in the elements so far.
            seed: a seed; if it is None, one is drawn from torch's generator.
            name: without effect.
        """
        function = require_function(class_func)
        wanted: list[float] = convert_to_tensor(target_dist).tolist()
        given = None if initial_dist is None else convert_to_tensor(initial_dist).tolist()
        first = int(torch.randint(1 << 62, ())) if seed is None else int(seed)

        def resampled() -> Iterator[Any]:
            draw, counts = random.Random(first), Counter[int]()
            for element in self:
                kind = call(function, element)
                counts[int(kind)] += 1
                found = [counts[number] / counts.total() for number in range(len(wanted))] if given is None else given
                if draw.random() < _acceptance(wanted, found)[int(kind)]:
                    yield convert_to_tensor(kind), element

        made = self._of(resampled, _UNKNOWN)
        made._described = lambda: (TensorSpec((), torch.int64), self.element_spec)
        return made

    def save(
        self, path: Any, compression: str | None = None, shard_func: Any = None, checkpoint_args: Any = None
    ) -> None:
        """Write all elements into the folder ``path``, in collshim's own format; the other arguments have no effect.

        Raises:
            TypeError: the elements are ragged or sparse.
        """
        elements = [map_components(_saved, element) for element in self]
        shapes = map_components(lambda spec: (list(spec.shape), spec.dtype), self.element_spec)
        Path(path).mkdir(parents=True, exist_ok=True)
        torch.save({"elements": elements, "shapes": shapes}, Path(path) / _FILE)

    @classmethod
    def load(
        cls,
        path: Any,
        element_spec: Any = None,
        compression: str | None = None,
        reader_func: Any = None,
        wait: bool = False,
    ) -> Any:
        """Return the dataset of the elements that ``save`` has written; ``compression`` and ``wait`` have no effect.

        ``reader_func``, a function of a dataset of datasets, may change the order of the elements.

        Raises:
            NotFoundError: there is no such dataset.
        """
        file = Path(path) / _FILE
        if not file.exists():
            raise NotFoundError(None, None, f"{path} has no dataset that Dataset.save has written")
        found = torch.load(file, weights_only=True)
        elements = [map_components(adopt, element) for element in found["elements"]]
        spec = _specs(found["shapes"]) if element_spec is None else element_spec
        made: Any = cls(lambda: elements, len(elements), None, lambda: spec)  # type: ignore[call-arg]
        if reader_func is None:
            return made
        shards = cls(lambda: [made], 1)  # type: ignore[call-arg]
        return reader_func(shards)

    @classmethod
    def list_files(
        cls, file_pattern: Any, shuffle: bool | None = None, seed: int | None = None, name: str | None = None
    ) -> Any:
        """Return a dataset of the paths that match a pattern, or one of several; shuffled unless ``shuffle`` is False.

        Raises:
            InvalidArgumentError: no file matches.
        """
        found = matching_files(file_pattern)
        if not len(found):
            raise invalid_argument(f"No files matched pattern: {file_pattern}")
        dataset: Any = cls
        paths = dataset.from_tensor_slices(found)
        return paths if shuffle is False else paths.shuffle(len(found), seed)

    @classmethod
    def random(
        cls, seed: int | None = None, rerandomize_each_iteration: bool | None = None, name: str | None = None
    ) -> Any:
        """Return an endless dataset of numbers below ``2**32``, int64, from Python's generator.

        With a ``seed``, and without ``rerandomize_each_iteration``, each iteration has the same numbers.
        """
        first = int(torch.randint(1 << 62, ())) if seed is None else int(seed)
        iterations = itertools.count() if rerandomize_each_iteration else itertools.repeat(0)

        def numbers() -> Iterator[Any]:
            draw = random.Random(f"{first}/{next(iterations)}")
            return (constant(draw.getrandbits(32), torch.int64) for _ in itertools.count())

        return cls(numbers, -1, None, lambda: TensorSpec((), torch.int64))  # type: ignore[call-arg]


def _without_errors(elements: Iterator[Any]) -> Iterator[Any]:
    while True:
        try:
            element = next(elements)
        except StopIteration:
            return
        except OpError:
            continue
        yield element


def _batch(spec: Any, *parts: Any) -> Any:
    if None not in list(spec.shape) and len({tuple(part.shape) for part in parts}) == 1:
        return adopt(torch.stack([plain(part) for part in parts]))
    if len({tuple(part.shape[1:]) for part in parts}) != 1:
        raise invalid_argument(f"ragged_batch: elements have shapes {[list(part.shape) for part in parts]}")
    return RaggedTensor(adopt(torch.cat([plain(part) for part in parts])), [len(part) for part in parts])


def _batch_spec(spec: Any, length: int | None) -> Any:
    if None in list(spec.shape):
        return RaggedTensorSpec([length, *spec.shape], spec.dtype, 1, torch.int64)
    return spec.reshaped([length, *spec.shape])


def _acceptance(wanted: list[float], found: list[float]) -> list[float]:
    ratios = [want / share if share else 0.0 for want, share in zip(wanted, found, strict=True)]
    most = max(ratios)
    return [ratio / most if most else 0.0 for ratio in ratios]


def _saved(part: Any) -> torch.Tensor:
    if not isinstance(part, torch.Tensor):
        raise ArgumentTypeError(f"save: an element is a {type(part).__name__}, should hold tensors")
    found: torch.Tensor = plain(part).detach()
    return found


def _specs(shapes: Any) -> Any:
    """Return the descriptions that ``save`` has written: pairs of a list, the shape, and a dtype, in their nest."""
    if isinstance(shapes, dict):
        return {key: _specs(one) for key, one in shapes.items()}
    if len(shapes) == 2 and isinstance(shapes[0], list):
        return TensorSpec(*shapes)
    return tuple(map(_specs, shapes))
