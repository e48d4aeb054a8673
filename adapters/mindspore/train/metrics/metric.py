"""``mindspore.train.Metric`` (source: MindSpore 2.10.0)."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from typing import Any

import numpy as np
import torch

from collshim.adapting.refusing import refuse

__all__ = ["Metric"]


class Metric(metaclass=ABCMeta):
    """The base of metrics: ``update`` adds a batch, and ``eval`` returns the metric of all batches."""

    def __init__(self) -> None:
        self._indexes: list[int] | None = None

    @property
    def indexes(self) -> list[int] | None:
        """The indices of the inputs of ``update`` that are used; None for all."""
        return self._indexes

    def set_indexes(self, indexes: list[int]) -> Metric:
        """Set ``indexes``, and return the metric.

        Raises:
            ValueError: ``indexes`` is not a list of ints.
        """
        if not isinstance(indexes, list) or not all(isinstance(index, int) for index in indexes):
            refuse(ValueError, f"For 'set_indexes', the argument 'indexes' must be a list of int, but got {indexes!r}")
        self._indexes = indexes
        return self

    def __call__(self, *inputs: Any) -> Any:
        """Return the metric of one batch."""
        self.clear()
        self.update(*inputs)
        return self.eval()

    def _arrays(self, inputs: tuple[Any, ...], count: int) -> list[np.ndarray[Any, Any]]:
        """Return the inputs at ``indexes``, as arrays."""
        chosen = inputs if self._indexes is None else tuple(inputs[index] for index in self._indexes)
        if len(chosen) != count:
            text = f"it needs {count} inputs, but got {len(chosen)}"
            refuse(ValueError, f"For '{type(self).__name__}.update', {text}")
        return [self._convert_data(each) for each in chosen]

    def _convert_data(self, data: Any) -> np.ndarray[Any, Any]:
        if isinstance(data, torch.Tensor):
            return data.detach().cpu().numpy()
        if isinstance(data, list | np.ndarray):
            return np.asarray(data)
        text = f"the input data type must be tensor, list or numpy.ndarray, but got {type(data)}"
        refuse(TypeError, f"For 'Metric' and its derived classes, {text}")

    def _quotient(self, total: Any, count: int) -> Any:
        if count == 0:
            text = "can not be calculated, because the number of samples is 0: call update before eval"
            refuse(RuntimeError, f"The {type(self).__name__!r} {text}")
        return total / count

    @abstractmethod
    def clear(self) -> None:
        """Discard the collected batches."""

    @abstractmethod
    def update(self, *inputs: Any) -> None:
        """Add a batch."""

    @abstractmethod
    def eval(self) -> Any:
        """Return the metric."""


def is_one_hot(labels: np.ndarray[Any, Any]) -> bool:
    """Return whether these are zeros, with a single 1 along the second axis."""
    return labels.ndim > 1 and bool(np.isin(labels, (0, 1)).all() and (labels.sum(1) == 1).all())
