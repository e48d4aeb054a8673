"""Precision, recall and their means, as recorded with MindSpore 2.10.0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from collshim.mindspore import Tensor, train

pytestmark = pytest.mark.unranked

OUTPUTS = np.array([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1], [0.1, 0.1, 0.8], [0.3, 0.4, 0.3]], np.float32)
LABELS = np.array([1, 0, 1, 2], np.int32)
ONE_HOT = np.eye(3)[LABELS].astype(np.float32)
MANY = np.array([[0, 1, 1], [1, 0, 0], [0, 1, 0]], np.float32)
RIGHT = np.array([[0, 1, 0], [1, 1, 0], [0, 1, 1]], np.float32)


@pytest.mark.parametrize(
    ("metric", "batches", "average", "expected"),
    [
        (train.Precision(), [(Tensor(OUTPUTS), Tensor(LABELS))], False, [1, 0.5, 0]),
        (train.Precision(), [(OUTPUTS, ONE_HOT)], True, 0.5),
        (train.Recall(), [(OUTPUTS, LABELS)], False, [1, 0.5, 0]),
        (train.Recall(), [(OUTPUTS, LABELS)] * 2, True, 0.5),
        (train.Precision("multilabel"), [(MANY, RIGHT)], False, [0.5, 1, 1]),
        (train.Recall("multilabel"), [(MANY, RIGHT)], True, 2 / 3),
        (train.F1(), [(OUTPUTS, LABELS)], False, [1, 0.5, 0]),
        (train.Fbeta(2.0), [(OUTPUTS, LABELS)], True, 0.5),
        (train.get_metric_fn("F1"), [(OUTPUTS, LABELS)], True, 0.5),
    ],
)
def test_a_metric_has_mindspores_value(metric: Any, batches: Any, average: bool, expected: Any) -> None:
    metric.clear()
    for batch in batches:
        metric.update(*batch)
    np.testing.assert_allclose(metric.eval(average), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: train.Fbeta(0), ValueError),
        (lambda: train.Precision("foo"), TypeError),
        (lambda: train.Recall().eval(), RuntimeError),
        (lambda: train.F1().update(OUTPUTS), ValueError),
        (lambda: train.F1().update(OUTPUTS, LABELS[:2]), ValueError),
        (lambda: train.F1().update(OUTPUTS, np.arange(4)), ValueError),
        (lambda: train.Precision("multilabel").update(OUTPUTS, OUTPUTS), ValueError),
        (lambda: train.Precision()(1, 2), TypeError),
    ],
)
def test_a_wrong_call_is_refused(call: Callable[[], Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        call()
