"""``tf.experimental``: ``Optional``, and functions about asynchronous calls, which do nothing: no call is one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from collshim.adapting.absent import saying
from collshim.tensorflow.data.optional import Optional

__all__ = ["Optional", "async_clear_error", "async_scope"]


@contextmanager
def async_scope() -> Iterator[None]:
    """Run the block, without a wait at its end: every call in it is complete when it returns."""
    yield


def async_clear_error() -> None:
    """Do nothing: errors are raised by the calls themselves."""


__getattr__ = saying(__name__)
