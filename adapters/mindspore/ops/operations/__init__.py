"""``mindspore.ops.operations``: the primitives (source: MindSpore 2.10.0)."""

from __future__ import annotations

from collshim.adapting.absent import saying
from collshim.mindspore.ops.operations import _array_ops, _computations, comm_ops
from collshim.mindspore.ops.operations._array_ops import *  # noqa: F403
from collshim.mindspore.ops.operations._computations import *  # noqa: F403
from collshim.mindspore.ops.operations.comm_ops import *  # noqa: F403  # all communication primitives
from collshim.mindspore.ops.primitive import Primitive, PrimitiveWithInfer

__all__ = ["Primitive", "PrimitiveWithInfer"]
__all__ += comm_ops.__all__
__all__ += _computations.__all__
__all__ += _array_ops.__all__

__getattr__ = saying(__name__)
