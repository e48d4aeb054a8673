"""The default group of torch.distributed on a rank of a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from collshim.torch import distributed


def has_default_group() -> bool:
    """Return whether torch.distributed has a default group on this rank."""
    return distributed.is_initialized()


@contextmanager
def default_group() -> Iterator[None]:
    """Create a default group of torch.distributed on this rank; after a failure it ends with the world."""
    distributed.init_process_group("gloo")
    yield
    if distributed.is_initialized():  # unless the test destroyed it
        distributed.destroy_process_group()
