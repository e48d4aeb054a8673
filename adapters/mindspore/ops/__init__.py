"""``mindspore.ops``: the primitives that communicate, and ``ops.communication`` (source: MindSpore 2.10.0)."""

from __future__ import annotations

from collshim.mindspore.ops import communication, operations
from collshim.mindspore.ops.operations import *  # noqa: F403  # as in MindSpore

__all__ = ["communication", "operations"]
__all__ += operations.__all__
