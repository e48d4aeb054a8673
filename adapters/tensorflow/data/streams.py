"""Streams of a dataset's elements: in batches, and shuffled. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from collshim.tensorflow.composites import stacked
from collshim.tensorflow.data.structure import map_components
from collshim.tensorflow.errors import checked


def batches(elements: Iterable[Any], sizes: Sequence[int], drops: bool) -> Iterator[Any]:
    """Yield the elements stacked, in batches of these sizes in turn; ``drops`` leaves out a last one that is not full.

    Raises:
        InvalidArgumentError: the shapes of the elements of a batch differ.
    """
    waiting = iter(elements)
    for size in itertools.cycle(sizes):
        several = list(itertools.islice(waiting, size))
        if not several or (drops and len(several) < size):
            return
        yield map_components(checked(stacked), *several)


def shuffled(elements: Iterable[Any], size: int, draw: random.Random) -> Iterator[Any]:
    """Yield the elements, each drawn from the next ``size`` ones."""
    waiting = iter(elements)
    buffer = list(itertools.islice(waiting, size))
    while buffer:
        place = draw.randrange(len(buffer))
        yield buffer[place]
        following = list(itertools.islice(waiting, 1))
        buffer[place : place + 1] = following


def repeated(elements: Iterable[Any], times: Iterable[int]) -> Iterator[Any]:
    """Yield the elements once for each of ``times``; stop if there are none."""
    for _ in times:
        found = False
        for element in elements:
            found = True
            yield element
        if not found:
            return


def kept(elements: Iterable[Any], kept_in: list[list[Any]]) -> Iterator[Any]:
    """Yield the elements, and put a list of all into ``kept_in`` at the end."""
    found = []
    for element in elements:
        found.append(element)
        yield element
    kept_in[:] = [found]
