"""``mindspore.dataset.config`` (source: MindSpore 2.10.0): the seed of this rank's datasets, and speed settings."""

from __future__ import annotations

import threading

import numpy as np

from collshim.adapting.refusing import refuse
from collshim.mindspore.common import seed as _common_seed

__all__ = [
    "get_num_parallel_workers",
    "get_prefetch_size",
    "get_seed",
    "set_num_parallel_workers",
    "set_prefetch_size",
    "set_seed",
]
_UNSET = 5489


class _Settings(threading.local):
    """The settings of one thread, because each thread may be a rank."""

    def __init__(self) -> None:
        self.seed: int | None = None
        self.common: int | None = None
        self.numbers = {"num_parallel_workers": 8, "prefetch_size": 16}


_SETTINGS = _Settings()


def set_seed(seed: int) -> None:
    """Set the seed for the order of datasets; ``mindspore.set_seed`` sets it too.

    Raises:
        TypeError: the seed is not an int.
        ValueError: the seed is negative, or above 2**32 - 1.
    """
    if not isinstance(seed, int) or isinstance(seed, bool):
        refuse(TypeError, f"seed isn't of type int, but got {type(seed)}")
    if not 0 <= seed < 2**32:
        refuse(ValueError, f"seed given is not within the required range [0, {2**32 - 1}], but got {seed}")
    _SETTINGS.seed, _SETTINGS.common = seed, _common_seed.get_seed()


def get_seed() -> int:
    """Return the seed; 5489 if none was set."""
    common = _common_seed.get_seed()
    if common != _SETTINGS.common:  # mindspore.set_seed was called later
        _SETTINGS.seed, _SETTINGS.common = common, common
    return _UNSET if _SETTINGS.seed is None else _SETTINGS.seed


def seed_of_sampler() -> int:
    """Return the seed; an unpredictable one if none was set."""
    found = get_seed()
    return int(np.random.SeedSequence().generate_state(1)[0]) if found == _UNSET else found


def _set(name: str, value: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        refuse(TypeError, f"{name} isn't of type int, but got {type(value)}")
    if value <= 0:
        refuse(ValueError, f"{name} should be positive, but got {value}")
    _SETTINGS.numbers[name] = value


def set_num_parallel_workers(num: int) -> None:
    """Store the number, without effect: rows are computed when they are read."""
    _set("num_parallel_workers", num)


def get_num_parallel_workers() -> int:
    """Return the stored number; the default is 8."""
    return _SETTINGS.numbers["num_parallel_workers"]


def set_prefetch_size(size: int) -> None:
    """Store the number, without effect."""
    _set("prefetch_size", size)


def get_prefetch_size() -> int:
    """Return the stored number; the default is 16."""
    return _SETTINGS.numbers["prefetch_size"]
