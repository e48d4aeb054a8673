"""``megengine.data.transform``."""

from __future__ import annotations

from collshim.adapting.absent import saying
from collshim.megengine.data.transform.meta_transform import PseudoTransform, Transform
from collshim.megengine.data.transform.vision import *  # noqa: F403  # as in MegEngine
from collshim.megengine.data.transform.vision.transform import __all__ as _vision

__all__ = ["PseudoTransform", "Transform", *_vision]  # noqa: PLE0604

__getattr__ = saying(__name__)
