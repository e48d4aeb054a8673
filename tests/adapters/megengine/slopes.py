"""Programs about gradients where functions have no derivative, or several; see ``programs``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def gradients(mge: Any, function: Callable[..., Any], *values: Any) -> list[Any]:
    """Return the gradients of the sum of a function's result."""
    inputs = [mge.Parameter(value) for value in values]
    manager = mge.autodiff.GradManager().attach(inputs)
    with manager:
        manager.backward(function(*inputs).sum())
    return [one.grad for one in inputs]


def of_equal_numbers(mge: Any) -> Any:
    """Differentiate extremes of equal numbers: of two, in a reduction, and in windows."""
    functional, ones = mge.functional, np.ones((1, 1, 3, 3), np.float32)
    return [
        gradients(mge, functional.maximum, [1.0, 2.0], [1.0, 3.0]),
        gradients(mge, functional.minimum, [1.0, 2.0], [1.0, 3.0]),
        gradients(mge, lambda x: functional.clip(x, 0.0, 1.0), [-1.0, 0.0, 0.5, 1.0, 2.0]),
        gradients(mge, lambda x: functional.max(x, axis=1), [[1.0, 1.0], [1.0, 2.0]]),
        gradients(mge, functional.min, [1.0, 1.0, 2.0]),
        gradients(mge, lambda x: functional.norm(x, np.inf), [2.0, -2.0, 1.0]),
        gradients(mge, lambda x: functional.max_pool2d(x, 2, 1), ones),
        gradients(mge, lambda x: functional.max_pool2d(x, 2, 2, 1), ones),
        gradients(mge, lambda x: functional.adaptive_max_pool2d(x, 1), ones),
    ]


def at_corners(mge: Any) -> Any:
    """Differentiate activations and losses at the ends of their pieces."""
    functional = mge.functional
    return [
        gradients(mge, functional.abs, [0.0, 1.0, -1.0]),
        gradients(mge, lambda x: functional.norm(x, 1), [0.0, 1.0]),
        gradients(mge, lambda x: functional.nn.l1_loss(x, mge.Tensor([1.0, 0.0])), [1.0, 1.0]),
        gradients(mge, functional.leaky_relu, [0.0, 1.0, -1.0]),
        gradients(mge, lambda x: functional.prelu(x, mge.Tensor([0.1])), [0.0, 1.0, -1.0]),
        gradients(mge, functional.hswish, [-3.0, 0.0, 3.0, 4.0, -4.0]),
        gradients(mge, functional.hsigmoid, [-3.0, 0.0, 3.0]),
        gradients(mge, functional.relu, [0.0, 1.0]),
        gradients(mge, functional.relu6, [0.0, 6.0, 7.0]),
    ]


def of_rounding(mge: Any) -> Any:
    """Differentiate functions that round."""
    functional = mge.functional
    functions = (functional.floor, functional.ceil, functional.round, functional.sign)
    return [
        *(gradients(mge, lambda x, function=function: function(x) + x * 2, [1.5]) for function in functions),
        gradients(mge, lambda x, y: x // y + x, [5.5], [2.0]),
        gradients(mge, functional.mod, [5.5], [2.0]),
    ]


ALL: dict[str, Callable[[Any], Any]] = {one.__name__: one for one in (of_equal_numbers, at_corners, of_rounding)}
