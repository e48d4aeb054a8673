"""``tf.experimental``: ``Optional``, and functions for asynchronous calls, which do nothing because no call is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from collshim.adapting.absent import saying
from collshim.tensorflow.data.optional import Optional

__all__ = ["Optional", "async_clear_error", "async_scope"]


@contextmanager
def async_scope() -> Iterator[None]:
    """Run the block without waiting at its end: every call in it is over when it returns."""
    yield


def async_clear_error() -> None:
    """Do nothing: errors are raised by the calls themselves."""


__getattr__ = saying(__name__)
