"""Conversions of operations' arguments (``megengine.core.tensor.utils``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from collshim.megengine.core.tensor.values import ints
from collshim.megengine.tensor import Tensor

__all__ = ["astensor1d", "get_convert_inputs", "isscalar", "make_shape_tuple", "result_type", "set_convert_inputs"]

_switches = {"convert inputs": True}


def isscalar(x: Any) -> bool:
    """Return whether ``x`` is a number, or a tensor without axes."""
    return x.ndim == 0 if isinstance(x, Tensor | np.ndarray) else bool(np.isscalar(x))


def make_shape_tuple(shape: Any) -> tuple[int, ...]:
    """Convert a shape, which is a number, a list or a tensor, to a tuple of ints."""
    return ints(shape)


def astensor1d(x: Any, *reference: Any, dtype: Any = None, device: str | None = None) -> Tensor:
    """Convert numbers, or a list of numbers and tensors, to a tensor; a tensor is returned unchanged."""
    if isinstance(x, Tensor):
        return x
    place = device or next((other.device for other in reference if isinstance(other, Tensor)), None)
    return Tensor(np.atleast_1d(np.asarray(x)), dtype=dtype, device=place)


def result_type(*args: Any) -> np.dtype[Any]:
    """Return the dtype that NumPy's promotion rule yields for tensors or dtypes."""
    return np.result_type(*(arg.dtype if isinstance(arg, Tensor) else arg for arg in args))


def get_convert_inputs() -> bool:
    """Return the value passed to ``set_convert_inputs``; inputs are always converted."""
    return _switches["convert inputs"]


def set_convert_inputs(flag: bool) -> bool:
    """Keep the switch and return its old value."""
    earlier, _switches["convert inputs"] = _switches["convert inputs"], flag
    return earlier
