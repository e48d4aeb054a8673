"""``Precision``, ``Recall``, ``Fbeta`` and ``F1`` of ``mindspore.train`` (source: MindSpore 2.10.0)."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from collshim.adapting.refusing import refuse
from collshim.mindspore._checkparam import check_value_type
from collshim.mindspore.train.metrics.metric import Metric, is_one_hot

__all__ = ["F1", "Fbeta", "Precision", "Recall"]
_LEAST = sys.float_info.min


class _Counting(Metric):
    """The numbers of samples of each class that were right, that were predicted, and that there were.

    With "multilabel", the numbers are those of each sample.
    """

    _type = "classification"

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def clear(self) -> None:
        """Discard the collected batches."""
        self._classes = 0
        self._right, self._predicted, self._actual = (np.zeros(0) for _ in range(3))

    def update(self, *inputs: Any) -> None:
        """Add a batch of outputs (N, C, ...) and labels (N, ...) or one-hot labels.

        Raises:
            ValueError: the shapes or the numbers of classes do not match, or values are invalid.
        """
        outputs, labels = self._arrays(inputs, 2)
        if self._type == "classification" and outputs.ndim == labels.ndim and is_one_hot(labels):
            labels = labels.argmax(1)
        self._require_fitting(outputs, labels)
        classes = self._classes = outputs.shape[1]
        if self._type == "multilabel":
            guess, truth = (each.swapaxes(1, 0).reshape(classes, -1) for each in (outputs, labels))
        else:
            guess = np.eye(classes)[outputs.argmax(1).reshape(-1)]
            truth = np.eye(classes)[labels.reshape(-1)]
        found = [each.sum(0) for each in (guess * truth, guess, truth)]
        own = (self._right, self._predicted, self._actual)
        if self._type == "multilabel":
            joined = [np.concatenate(pair) for pair in zip(own, found, strict=True)]
        else:
            joined = [(old if old.size else 0) + new for old, new in zip(own, found, strict=True)]
        self._right, self._predicted, self._actual = joined

    def _require_fitting(self, outputs: np.ndarray[Any, Any], labels: np.ndarray[Any, Any]) -> None:
        many, start = self._type == "multilabel", f"For '{type(self).__name__}.update'"
        wanted = outputs.shape if many else (*outputs.shape[:1], *outputs.shape[2:])
        if labels.shape != wanted:
            refuse(ValueError, f"{start}, labels of {outputs.shape} must be {wanted}, but got {labels.shape}")
        if self._classes not in (0, outputs.shape[1]):
            text = f"there must be {self._classes} classes as before, but got {outputs.shape[1]}"
            refuse(ValueError, f"{start}, {text}")
        if many and not (np.isin(outputs, (0, 1)).all() and np.isin(labels, (0, 1)).all()):
            refuse(ValueError, f"{start}, in multilabel case, all elements should be 0 or 1, but got others")
        if not many and labels.max() >= outputs.shape[1]:
            refuse(ValueError, f"{start}, labels should be below {outputs.shape[1]}, but got {labels.max()}")

    def eval(self, average: bool = False) -> Any:
        """Return the metric of each class, or its mean.

        Raises:
            RuntimeError: there were no samples.
            TypeError: ``average`` is not a bool.
        """
        if self._classes == 0:
            self._quotient(0, 0)
        check_value_type("average", average, bool, type(self).__name__)
        found = self._shares()
        return found.mean() if average else found

    def _shares(self) -> Any:
        raise NotImplementedError


class _OfOneKind(_Counting):
    """A metric with an ``eval_type``; raises TypeError if it is neither "classification" nor "multilabel"."""

    def __init__(self, eval_type: str = "classification") -> None:
        if eval_type not in ("classification", "multilabel"):
            refuse(TypeError, f"The argument 'eval_type' must be classification or multilabel, but got {eval_type}")
        self._type = eval_type
        super().__init__()


class Precision(_OfOneKind):
    """For each class, the share of right samples among those predicted; for "multilabel", for each sample."""

    def _shares(self) -> Any:
        return self._right / (self._predicted + _LEAST)


class Recall(_OfOneKind):
    """For each class, the share of right samples among those that there were; for "multilabel", for each sample."""

    def _shares(self) -> Any:
        return self._right / (self._actual + _LEAST)


class Fbeta(_Counting):
    """For each class, the weighted harmonic mean of precision and recall; ``beta`` is the weight of the recall.

    Raises:
        ValueError: ``beta`` is not positive.
    """

    def __init__(self, beta: float) -> None:
        if not beta > 0:
            refuse(ValueError, f"For 'Fbeta', the argument 'beta' must be greater than 0, but got {beta}.")
        self.beta = beta
        super().__init__()

    def _shares(self) -> Any:
        weight = self.beta**2
        return (1 + weight) * self._right / (weight * self._actual + self._predicted + _LEAST)


class F1(Fbeta):
    """For each class, the harmonic mean of precision and recall."""

    def __init__(self) -> None:
        super().__init__(1.0)
