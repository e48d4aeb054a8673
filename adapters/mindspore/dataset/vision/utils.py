"""Enumerations of ``mindspore.dataset.vision`` (source: MindSpore 2.10.0)."""

from __future__ import annotations

from enum import Enum, IntEnum

__all__ = ["Border", "Inter"]


class Inter(IntEnum):
    """Interpolations; LINEAR is BILINEAR, CUBIC is BICUBIC."""

    NEAREST = 0
    ANTIALIAS = 1
    BILINEAR = LINEAR = 2
    BICUBIC = CUBIC = 3
    AREA = 4
    PILCUBIC = 5


class Border(str, Enum):
    """How an image is extended beyond its edges."""

    CONSTANT = "constant"
    EDGE = "edge"
    REFLECT = "reflect"
    SYMMETRIC = "symmetric"
