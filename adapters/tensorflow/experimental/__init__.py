"""``tf.experimental``: ``Optional``, and a scope in which nothing is asynchronous here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from collshim.adapting.absent import saying
from collshim.tensorflow.data.optional import Optional

__all__ = ["Optional", "async_clear_error", "async_scope"]


@contextmanager
def async_scope() -> Iterator[None]:
    """Run the block: every call in it has ended when it returns."""
    yield


def async_clear_error() -> None:
    """Do nothing: an error is raised by the call itself."""


__getattr__ = saying(__name__)
