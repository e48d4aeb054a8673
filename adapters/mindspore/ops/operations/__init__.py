"""``mindspore.ops.operations``: the primitives that communicate (source: MindSpore 2.10.0)."""

from __future__ import annotations

from collshim.mindspore.ops.operations import comm_ops
from collshim.mindspore.ops.operations.comm_ops import *  # noqa: F403  # as in MindSpore

__all__ = ["comm_ops"]
__all__ += comm_ops.__all__
