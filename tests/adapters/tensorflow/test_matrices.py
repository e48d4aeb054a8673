"""``tf.linalg``'s functions of matrices; expected results are from TensorFlow 2.21 on CPUs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import collshim.tensorflow as tf

pytestmark = pytest.mark.unranked

M = tf.constant([[4.0, 1.0], [1.0, 3.0]])
V = tf.constant([1.0, 2.0])
C = tf.constant([[1.0], [2.0]])


@pytest.mark.parametrize(
    ("compute", "expected"),
    [
        (lambda: tf.linalg.matvec(M, V), [6.0, 7.0]),
        (lambda: tf.linalg.matvec(tf.stack([M, 2 * M]), V), [[6.0, 7.0], [12.0, 14.0]]),
        (lambda: tf.linalg.band_part(M, -1, 0), [[4.0, 0.0], [1.0, 3.0]]),
        (lambda: tf.linalg.cholesky(M), [[2.0, 0.0], [0.5, 1.6583124]]),
        (lambda: tf.linalg.cholesky_solve(tf.linalg.cholesky(M), C), [[0.0909091], [0.6363636]]),
        (lambda: tf.linalg.cross([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]), [0.0, 0.0, 1.0]),
        (lambda: tf.linalg.det(M), 11.0),
        (lambda: tf.linalg.slogdet(M).log_abs_determinant, 2.3978953),
        (lambda: tf.linalg.logdet(M), 2.3978953),
        (lambda: tf.linalg.eigvalsh(M), [2.381966, 4.618034]),
        (lambda: tf.linalg.eigh(M)[0], [2.381966, 4.618034]),
        (lambda: tf.linalg.inv(M), [[0.2727273, -0.0909091], [-0.0909091, 0.3636364]]),
        (lambda: tf.linalg.solve(M, C), [[0.0909091], [0.6363636]]),
        (lambda: tf.linalg.triangular_solve(M, C), [[0.25], [0.5833333]]),
        (lambda: tf.linalg.triangular_solve(M, C, adjoint=True), [[0.0833333], [0.6666667]]),
        (lambda: tf.linalg.svd(M, compute_uv=False), [4.618034, 2.381966]),
        (lambda: tf.linalg.svd(M)[0], [4.618034, 2.381966]),
        (lambda: tf.linalg.pinv(M), [[0.2727273, -0.0909091], [-0.0909091, 0.3636364]]),
        (lambda: tf.linalg.matrix_rank(M), 2),
        (lambda: tf.linalg.normalize(V)[0], [0.4472136, 0.8944272]),
        (lambda: tf.linalg.adjoint(tf.constant([[1 + 2j]])), [[1 - 2j]]),
    ],
)
def test_functions_of_matrices(compute: Callable[[], Any], expected: Any) -> None:
    found = compute()
    np.testing.assert_allclose(found.numpy(), np.array(expected), rtol=1e-5, atol=1e-6)
    assert isinstance(found, tf.Tensor)


def test_a_matrix_that_is_not_positive_definite_has_no_factor() -> None:
    assert np.isnan(tf.linalg.cholesky(-M).numpy()[0, 0])


@pytest.mark.parametrize(
    "compute",
    [
        lambda: tf.linalg.inv(tf.zeros([2, 2])),
        lambda: tf.linalg.solve(M, V),
        lambda: tf.linalg.det(tf.constant([[1]])),
        lambda: tf.linalg.matvec(M, tf.constant([1, 2])),
    ],
)
def test_matrices_that_do_not_fit_are_refused(compute: Callable[[], Any]) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        compute()
