"""``mindspore.dataset.transforms`` (source: MindSpore 2.10.0): operations on a row's values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from collshim.adapting.refusing import refuse
from collshim.mindspore._checkparam import is_number
from collshim.mindspore.common.dtype import dtype_to_nptype, torch_dtype

__all__ = ["Compose", "OneHot", "TypeCast"]


class TypeCast:
    """Convert values to another dtype: MindSpore's, NumPy's or Python's.

    Raises:
        TypeError: there is no such dtype.
    """

    def __init__(self, data_type: Any) -> None:
        self._type = dtype_to_nptype(torch_dtype(data_type))

    def __call__(self, input_data: Any) -> np.ndarray[Any, Any]:
        """Return the values in the new dtype."""
        return np.asarray(input_data).astype(self._type)


class Compose:
    """Apply operations one after the other.

    Raises:
        TypeError: ``transforms`` is not a list, or an entry is not callable.
        ValueError: ``transforms`` is empty.
    """

    def __init__(self, transforms: list[Callable[..., Any]]) -> None:
        if not isinstance(transforms, list):
            refuse(TypeError, f"Argument transforms with value {transforms} is not of type [<class 'list'>]")
        if not transforms:
            refuse(ValueError, "transforms list can not be empty.")
        if not all(callable(transform) for transform in transforms):
            refuse(TypeError, f"transforms should be callable, but got {[type(each).__name__ for each in transforms]}")
        self.transforms = transforms

    def __call__(self, *args: Any) -> Any:
        """Return the last operation's result."""
        values: tuple[Any, ...] = args
        for transform in self.transforms:
            found = transform(*values)
            values = found if isinstance(found, tuple) else (found,)
        return values[0] if len(values) == 1 else values


class OneHot:
    """Encode a class as a vector with 1 at its index; ``smoothing_rate`` of the 1 is spread over all classes.

    Raises:
        TypeError: an argument has the wrong type; in a call, the label is not an int.
        ValueError: a number is out of range.
        RuntimeError: in a call, there is no such class.
    """

    def __init__(self, num_classes: int, smoothing_rate: float = 0.0) -> None:
        if not is_number(num_classes, int) or not isinstance(smoothing_rate, int | float):
            text = f"num_classes should be an int and smoothing_rate a float, but got {num_classes}, {smoothing_rate}"
            refuse(TypeError, text)
        if num_classes < 1 or not 0 <= smoothing_rate <= 1:
            text = f"should be positive and from 0 to 1, but got {num_classes}, {smoothing_rate}"
            refuse(ValueError, f"num_classes and smoothing_rate {text}")
        self.num_classes, self.smoothing_rate = num_classes, smoothing_rate

    def __call__(self, label: Any) -> np.ndarray[Any, Any]:
        """Return the vector; its dtype is the label's, or float64 if it is smoothed."""
        given = np.asarray(label)
        if given.dtype.kind not in "iu":
            refuse(TypeError, f"OneHot: the label should be an int, but got {given.dtype}")
        if not ((given >= 0) & (given < self.num_classes)).all():
            refuse(RuntimeError, f"OneHot: the label should be from 0 to {self.num_classes - 1}, but got {label}")
        hot: np.ndarray[Any, Any] = np.eye(self.num_classes, dtype=given.dtype)[given]
        if not self.smoothing_rate:
            return hot
        smooth: np.ndarray[Any, Any] = hot * (1 - self.smoothing_rate) + self.smoothing_rate / self.num_classes
        return smooth
