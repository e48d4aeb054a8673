"""``tf.test.TestCase``; which assertions fail was compared with TensorFlow 2.21."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import collshim.tensorflow as tf

pytestmark = pytest.mark.unranked

X = tf.constant([1.0, 2.0])


class Case(tf.test.TestCase):
    """A test case whose assertions are called one by one."""


@pytest.mark.parametrize(
    ("holds", "fails"),
    [
        (lambda case: case.assertAllEqual(X, [1.0, 2.0]), lambda case: case.assertAllEqual(X, [1.0, 3.0])),
        (lambda case: case.assertAllEqual([X, X], [[1, 2]] * 2), lambda case: case.assertAllEqual(X, 1.0)),
        (lambda case: case.assertNotAllEqual(X, [1.0]), lambda case: case.assertNotAllEqual(X, X)),
        (lambda case: case.assertAllClose(X, X + 1e-7), lambda case: case.assertAllClose(X, X + 1e-3)),
        (
            lambda case: case.assertAllClose({"a": [X, X[:1]]}, {"a": [[1, 2], [1]]}),
            lambda case: case.assertAllClose({"a": X}, {"b": X}),
        ),
        (lambda case: case.assertNotAllClose(X, X + 1), lambda case: case.assertNotAllClose(X, X)),
        (
            lambda case: case.assertAllCloseAccordingToType(tf.cast(X, tf.float16), X + 1e-4),
            lambda case: case.assertAllCloseAccordingToType(X, X + 1e-4),
        ),
        (lambda case: case.assertShapeEqual(X, np.ones(2)), lambda case: case.assertShapeEqual(X, np.ones(3))),
        (lambda case: case.assertDTypeEqual(X, tf.float32), lambda case: case.assertDTypeEqual(X, tf.float64)),
        (lambda case: case.assertAllGreater(X, 0), lambda case: case.assertAllGreater(X, 1)),
        (lambda case: case.assertAllInSet(X, {1.0, 2.0}), lambda case: case.assertAllInSet(X, {1.0})),
        (lambda case: case.assertLen([1], 1), lambda case: case.assertLen([1], 2)),
    ],
)
def test_assertions_hold_and_fail(holds: Callable[[Any], None], fails: Callable[[Any], None]) -> None:
    holds(Case())
    with pytest.raises(AssertionError):
        fails(Case())


def test_values_of_nests_are_evaluated() -> None:
    found = Case().evaluate({"a": [tf.Variable(1.0), 2]})
    assert (found, type(found["a"][0])) == ({"a": [1.0, 2]}, np.float32)


def test_errors_are_matched() -> None:
    with Case().assertRaisesOpError("does not fit|list of allowed values"):
        tf.sqrt(tf.constant(1))
    with pytest.raises(AssertionError, match="is not the expected one"), Case().assertRaisesOpError("Nothing"):
        tf.sqrt(tf.constant(1))


def test_the_folder_of_a_test_is_removed_after_it() -> None:
    case = Case()
    folder = Path(case.get_temp_dir())
    assert (folder.is_dir(), case.get_temp_dir()) == (True, str(folder))
    case.doCleanups()
    assert not folder.exists()
