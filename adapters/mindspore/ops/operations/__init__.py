"""``mindspore.ops.operations``: the primitives (source: MindSpore 2.10.0)."""

from __future__ import annotations

from collshim.adapting.absent import saying
from collshim.mindspore.ops.functions import Add, Cast, Depend, MatMul, Mul, Reshape
from collshim.mindspore.ops.operations import comm_ops as comm_ops
from collshim.mindspore.ops.operations.comm_ops import *  # noqa: F403  # all communicating primitives

__all__ = ["Add", "Cast", "Depend", "MatMul", "Mul", "Reshape", "comm_ops"]
__all__ += comm_ops.__all__

__getattr__ = saying(__name__)
