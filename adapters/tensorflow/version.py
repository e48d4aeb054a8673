"""``tf.version``: the release that the adapter implements."""

from __future__ import annotations

from collshim.adapting.absent import saying

__all__ = ["GIT_VERSION", "VERSION"]

VERSION = "2.21.0"
GIT_VERSION = "unknown"

__getattr__ = saying(__name__)
