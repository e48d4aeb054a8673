"""``CompNode``, a device's name (``megengine.core._imperative_rt.common``)."""

from __future__ import annotations

from collshim.megengine.device import CompNode

__all__ = ["CompNode"]
