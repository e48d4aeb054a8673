"""``megengine.data.transform.vision``: image transforms."""

from __future__ import annotations

from collshim.adapting.absent import saying
from collshim.megengine.data.transform.vision.transform import *  # noqa: F403  # as in MegEngine
from collshim.megengine.data.transform.vision.transform import __all__ as __all__

__getattr__ = saying(__name__)
