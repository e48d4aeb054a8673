"""``megengine.data.transform``."""

from __future__ import annotations

from collshim.adapting.absent import saying
from collshim.megengine.data.transform.meta_transform import PseudoTransform, Transform
from collshim.megengine.data.transform.vision import *  # noqa: F403  # as in MegEngine
from collshim.megengine.data.transform.vision import transform as _vision

__all__ = ["PseudoTransform", "Transform"]
__all__ += _vision.__all__

__getattr__ = saying(__name__)
