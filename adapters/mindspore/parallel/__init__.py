"""``mindspore.parallel``: the names that libraries import (source: MindSpore 2.10.0)."""

from __future__ import annotations

from collshim.adapting.absent import saying

__all__: list[str] = []

__getattr__ = saying(__name__)
