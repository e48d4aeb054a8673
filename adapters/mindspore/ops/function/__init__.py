"""``mindspore.ops.function``: functions by subject (source: MindSpore 2.10.0)."""

from __future__ import annotations

from functools import partial

from collshim.adapting.absent import saying
from collshim.mindspore.ops.function import (
    array_func,
    clip_func,
    index_func,
    math_func,
    nn_func,
    parameter_func,
    torch_func,
)
from collshim.mindspore.ops.function.array_func import *  # noqa: F403
from collshim.mindspore.ops.function.clip_func import *  # noqa: F403
from collshim.mindspore.ops.function.index_func import *  # noqa: F403
from collshim.mindspore.ops.function.math_func import *  # noqa: F403
from collshim.mindspore.ops.function.nn_func import *  # noqa: F403
from collshim.mindspore.ops.function.parameter_func import *  # noqa: F403
from collshim.mindspore.ops.function.torch_func import *  # noqa: F403

__all__ = ["partial"]
__all__ += array_func.__all__
__all__ += clip_func.__all__
__all__ += index_func.__all__
__all__ += math_func.__all__
__all__ += nn_func.__all__
__all__ += parameter_func.__all__
__all__ += torch_func.__all__

__getattr__ = saying(__name__)
