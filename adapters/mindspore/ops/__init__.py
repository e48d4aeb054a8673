"""``mindspore.ops``: primitives, ``ops.communication``, functions for use between them (source: MindSpore 2.10.0)."""

from __future__ import annotations

from collshim.adapting.absent import saying
from collshim.mindspore.gradients import grad, value_and_grad
from collshim.mindspore.ops import communication, composite, function, functional, operations, primitive
from collshim.mindspore.ops.composite import GradOperation, HyperMap, Map, MultitypeFuncGraph
from collshim.mindspore.ops.function import *  # noqa: F403
from collshim.mindspore.ops.operations import *  # noqa: F403
from collshim.mindspore.ops.primitive import Primitive, PrimitiveWithInfer

__all__ = [
    "GradOperation",
    "HyperMap",
    "Map",
    "MultitypeFuncGraph",
    "Primitive",
    "PrimitiveWithInfer",
    "communication",
    "composite",
    "function",
    "functional",
    "grad",
    "operations",
    "primitive",
    "value_and_grad",
]
__all__ += [name for name in function.__all__ if name != "comm_func"]
__all__ += [name for name in operations.__all__ if name not in ("comm_ops", *__all__)]

__getattr__ = saying(__name__, "the collectives and the other names in its __all__")
