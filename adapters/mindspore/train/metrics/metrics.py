"""Metrics of ``mindspore.train`` (source: MindSpore 2.10.0). Each covers this rank's batches only."""

from __future__ import annotations

from typing import Any

import numpy as np

from collshim.adapting.refusing import refuse
from collshim.mindspore.train.metrics.counting import F1, Precision, Recall
from collshim.mindspore.train.metrics.metric import Metric, is_one_hot

__all__ = [
    "MAE",
    "MSE",
    "Accuracy",
    "Loss",
    "Top1CategoricalAccuracy",
    "Top5CategoricalAccuracy",
    "TopKCategoricalAccuracy",
    "get_metric_fn",
    "names",
]


class _Mean(Metric):
    """A sum over samples, divided by their number."""

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def clear(self) -> None:
        """Discard the collected batches."""
        self._total: Any = 0
        self._count = 0

    def eval(self) -> Any:
        """Return the mean.

        Raises:
            RuntimeError: there were no samples.
        """
        return self._quotient(self._total, self._count)


class Accuracy(_Mean):
    """The share of samples whose greatest output is the label's; for "multilabel", whose outputs are all right.

    ``update(outputs, labels)`` takes outputs (N, C, ...) and labels (N, ...) or one-hot labels; for "multilabel", both
    have the same shape, and consist of zeros and ones.

    Raises:
        TypeError: ``eval_type`` has any other value.
        ValueError: in ``update``, the shapes do not match, or values are invalid.
    """

    def __init__(self, eval_type: str = "classification") -> None:
        super().__init__()
        if eval_type not in ("classification", "multilabel"):
            refuse(TypeError, f"The argument 'eval_type' must be classification or multilabel, but got {eval_type}")
        self._type, self._classes = eval_type, 0

    def clear(self) -> None:
        """Discard the collected batches."""
        super().clear()
        self._classes = 0

    def update(self, *inputs: Any) -> None:
        """Add a batch."""
        outputs, labels = self._arrays(inputs, 2)
        if self._type == "classification" and outputs.ndim == labels.ndim and is_one_hot(labels):
            labels = labels.argmax(1)
        self._require_fitting(outputs, labels)
        if self._classes not in (0, outputs.shape[1]):
            text = f"there must be {self._classes} classes as before, but got {outputs.shape[1]}"
            refuse(ValueError, f"For 'Accuracy.update', {text}")
        self._classes = outputs.shape[1]
        if self._type == "classification":
            right = outputs.argmax(1) == labels
        else:
            last = outputs.ndim - 1
            pair = [each.swapaxes(1, last).reshape(-1, self._classes) for each in (outputs, labels)]
            right = (pair[0] == pair[1]).all(1)
        self._total += right.sum()
        self._count += right.size

    def _require_fitting(self, outputs: np.ndarray[Any, Any], labels: np.ndarray[Any, Any]) -> None:
        wanted = outputs.shape if self._type == "multilabel" else (*outputs.shape[:1], *outputs.shape[2:])
        if labels.shape != wanted:
            text = f"the shape of y should be {wanted} for y_pred of {outputs.shape}, but got {labels.shape}"
            refuse(ValueError, f"In {self._type} case, {text}")
        if self._type == "multilabel" and not (np.isin(outputs, (0, 1)).all() and np.isin(labels, (0, 1)).all()):
            refuse(ValueError, "In multilabel case, all elements in y_pred and y should be 0 or 1.")


class Loss(_Mean):
    """The mean of the batches' losses; ``update(loss)``.

    Raises:
        ValueError: in ``update``, the loss has more than one axis.
    """

    def update(self, *inputs: Any) -> None:
        """Add a batch."""
        (loss,) = self._arrays(inputs, 1)
        if loss.ndim > 1:
            refuse(ValueError, f"For 'Loss.update', the dimension of your input (loss) must be 1, but got {loss.ndim}.")
        self._total += loss.reshape(-1).mean(-1)
        self._count += 1


class MAE(_Mean):
    """The sum of absolute errors over the number of samples; ``update(outputs, labels)``."""

    def update(self, *inputs: Any) -> None:
        """Add a batch."""
        outputs, labels = self._arrays(inputs, 2)
        self._total += np.abs(labels.reshape(outputs.shape) - outputs).sum()
        self._count += labels.shape[0]


class MSE(_Mean):
    """The sum of squared errors over the number of samples; ``update(outputs, labels)``."""

    def update(self, *inputs: Any) -> None:
        """Add a batch."""
        outputs, labels = self._arrays(inputs, 2)
        self._total += np.power(labels.reshape(outputs.shape) - outputs, 2).sum()
        self._count += labels.shape[0]


class TopKCategoricalAccuracy(_Mean):
    """The share of samples whose label is one of the classes of the ``k`` greatest outputs.

    Raises:
        TypeError: ``k`` is not an int.
        ValueError: ``k`` is below 1.
    """

    def __init__(self, k: int) -> None:
        super().__init__()
        if not isinstance(k, int):
            refuse(TypeError, f"For 'TopKCategoricalAccuracy', the argument 'k' should be int, but got {type(k)}")
        if k < 1:
            refuse(ValueError, f"For 'TopKCategoricalAccuracy', the argument 'k' must be at least 1, but got {k}")
        self.k = k

    def update(self, *inputs: Any) -> None:
        """Add a batch."""
        outputs, labels = self._arrays(inputs, 2)
        if outputs.ndim == labels.ndim and is_one_hot(labels):
            labels = labels.argmax(1)
        best = np.argsort(-outputs, 1)[:, : self.k]
        self._total += (best == labels.reshape(-1, 1)).sum()
        self._count += len(outputs)


class Top1CategoricalAccuracy(TopKCategoricalAccuracy):
    """The share of samples whose label is the class of the greatest output."""

    def __init__(self) -> None:
        super().__init__(1)


class Top5CategoricalAccuracy(TopKCategoricalAccuracy):
    """The share of samples whose label is one of the classes of the five greatest outputs."""

    def __init__(self) -> None:
        super().__init__(5)


_NAMED: dict[str, Any] = {
    "F1": F1,
    "precision": Precision,
    "recall": Recall,
    "accuracy": Accuracy,
    "acc": Accuracy,
    "topk": TopKCategoricalAccuracy,
    "top_1_accuracy": Top1CategoricalAccuracy,
    "top_5_accuracy": Top5CategoricalAccuracy,
    "mae": MAE,
    "mse": MSE,
    "loss": Loss,
}


def names() -> list[str]:
    """Return the names of all metrics."""
    return sorted(_NAMED)


def get_metric_fn(name: str, *args: Any, **kwargs: Any) -> Metric:
    """Return a new metric, chosen by name, created with these arguments.

    Raises:
        KeyError: there is no metric of this name.
    """
    if name not in _NAMED:
        refuse(KeyError, f"For 'get_metric_fn', unsupported metric {name}: should be one of {', '.join(names())}")
    metric: Metric = _NAMED[name](*args, **kwargs)
    return metric


def get_metrics(metrics: Any) -> dict[str, Metric]:
    """Return the metrics of a dict or a set of names, by name; an empty dict for None.

    Raises:
        TypeError: ``metrics`` is not None, a dict or a set.
    """
    if metrics is None:
        return {}
    if isinstance(metrics, set):
        return {name: get_metric_fn(name) for name in metrics}
    if not isinstance(metrics, dict):
        refuse(TypeError, f"For 'get_metrics', the argument 'metrics' must be None, dict or set, but got {metrics}")
    for name, metric in metrics.items():
        if not isinstance(name, str) or not isinstance(metric, Metric):
            text = f"the key in 'metrics' must be string and value Metric, but got {type(name)}, {type(metric)}"
            refuse(TypeError, f"For 'get_metrics', {text}")
    return metrics
