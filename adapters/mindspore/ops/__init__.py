"""``mindspore.ops``: primitives, ``ops.communication``, functions for use between them (source: MindSpore 2.10.0)."""

from __future__ import annotations

from collshim.adapting.absent import saying
from collshim.mindspore.gradients import grad, value_and_grad
from collshim.mindspore.ops import communication, functions, operations, primitive
from collshim.mindspore.ops.functions import (
    Add,
    Cast,
    Depend,
    Identity,
    MatMul,
    Mul,
    Reshape,
    add,
    cat,
    depend,
    matmul,
    mul,
    ones,
    ones_like,
    reshape,
    split,
    stack,
    zeros,
    zeros_like,
)
from collshim.mindspore.ops.functions import cast_ as cast
from collshim.mindspore.ops.operations import comm_ops as _comm_ops
from collshim.mindspore.ops.operations.comm_ops import *  # noqa: F403  # all communicating primitives
from collshim.mindspore.ops.primitive import Primitive, PrimitiveWithInfer

__all__ = [
    "Add",
    "Cast",
    "Depend",
    "Identity",
    "MatMul",
    "Mul",
    "Primitive",
    "PrimitiveWithInfer",
    "Reshape",
    "add",
    "cast",
    "cat",
    "communication",
    "depend",
    "functions",
    "grad",
    "matmul",
    "mul",
    "ones",
    "ones_like",
    "operations",
    "primitive",
    "reshape",
    "split",
    "stack",
    "value_and_grad",
    "zeros",
    "zeros_like",
]
__all__ += _comm_ops.__all__

__getattr__ = saying(__name__)
