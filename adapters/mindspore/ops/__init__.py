"""``mindspore.ops``: primitives, ``ops.communication`` and functions of tensors (source: MindSpore 2.10.0)."""

from __future__ import annotations

from functools import partial

from collshim.adapting.absent import saying
from collshim.mindspore.gradients import grad, value_and_grad
from collshim.mindspore.ops import communication, composite, function, functional, operations, primitive
from collshim.mindspore.ops.composite import GradOperation, HyperMap, Map, MultitypeFuncGraph
from collshim.mindspore.ops.function import array_func as _array_func
from collshim.mindspore.ops.function import clip_func as _clip_func
from collshim.mindspore.ops.function import index_func as _index_func
from collshim.mindspore.ops.function import math_func as _math_func
from collshim.mindspore.ops.function import nn_func as _nn_func
from collshim.mindspore.ops.function import parameter_func as _parameter_func
from collshim.mindspore.ops.function import torch_func as _torch_func
from collshim.mindspore.ops.function.array_func import *  # noqa: F403
from collshim.mindspore.ops.function.clip_func import *  # noqa: F403
from collshim.mindspore.ops.function.index_func import *  # noqa: F403
from collshim.mindspore.ops.function.math_func import *  # noqa: F403
from collshim.mindspore.ops.function.nn_func import *  # noqa: F403
from collshim.mindspore.ops.function.parameter_func import *  # noqa: F403
from collshim.mindspore.ops.function.torch_func import *  # noqa: F403
from collshim.mindspore.ops.operations import _array_ops as _array_ops
from collshim.mindspore.ops.operations import _computations as _computations
from collshim.mindspore.ops.operations import comm_ops as _comm_ops
from collshim.mindspore.ops.operations._array_ops import *  # noqa: F403
from collshim.mindspore.ops.operations._computations import *  # noqa: F403
from collshim.mindspore.ops.operations.comm_ops import *  # noqa: F403  # all communication primitives
from collshim.mindspore.ops.primitive import (
    Primitive,
    PrimitiveWithCheck,
    PrimitiveWithInfer,
    constexpr,
    prim_attr_register,
)

__all__ = [
    "GradOperation",
    "HyperMap",
    "Map",
    "MultitypeFuncGraph",
    "Primitive",
    "PrimitiveWithCheck",
    "PrimitiveWithInfer",
    "communication",
    "composite",
    "constexpr",
    "function",
    "functional",
    "grad",
    "operations",
    "partial",
    "prim_attr_register",
    "primitive",
    "value_and_grad",
]
__all__ += _array_func.__all__
__all__ += _clip_func.__all__
__all__ += _index_func.__all__
__all__ += _math_func.__all__
__all__ += _nn_func.__all__
__all__ += _parameter_func.__all__
__all__ += _comm_ops.__all__
__all__ += _torch_func.__all__
__all__ += _computations.__all__
__all__ += _array_ops.__all__

__getattr__ = saying(__name__)
