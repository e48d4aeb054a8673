"""Methods of tensors whose arguments or results differ from torch's, and what a tensor can be made from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import collshim.mindspore as ms
from collshim.mindspore import Parameter, Tensor

pytestmark = pytest.mark.unranked

X = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
untyped: Any = Parameter  # calls that the types forbid are tested too
V = Tensor(np.array([1.0, 2.0, 3.0], np.float32))
CHOSEN = Tensor([[True, False, True], [False, False, True]])


@pytest.mark.parametrize(
    ("compute", "expected"),
    [
        (lambda: X.diag().reshape(6, 6), np.diag(np.arange(6))),
        (lambda: V.diag(), np.diag([1, 2, 3])),
        (lambda: X.dot(X.T), [[5, 14], [14, 50]]),
        (lambda: X.flatten(order="F"), [0, 3, 1, 4, 2, 5]),
        (lambda: X.flatten(start_dim=0), [0, 1, 2, 3, 4, 5]),
        (lambda: X.select(CHOSEN, -X), [[0, -1, 2], [-3, -4, 5]]),
        (lambda: X.select(1, 2), [2, 5]),
        (lambda: X.take(Tensor([7, 1])), [5, 1]),
        (lambda: X.take(Tensor([7]), mode="wrap"), [1]),
        (lambda: X.take(Tensor([2, 0]), axis=1), [[2, 0], [5, 3]]),
        (lambda: X.sum(axis=0, initial=1.0), [4, 6, 8]),
        (lambda: X.max(axis=0, where=CHOSEN, initial=2.0), [2, 2, 5]),
        (lambda: X.max(initial=10.0), 5),
        (lambda: X.median(0)[0], [0, 1, 2]),
        (lambda: X.median()[1], [1, 1]),
        (lambda: X.count_nonzero(axis=1), [2, 3]),
        (lambda: X.index_fill(0, Tensor([0], ms.int32), 9.0), [[9, 9, 9], [3, 4, 5]]),
        (lambda: X.gather_elements(1, Tensor([[0], [1]], ms.int32)), [[0], [4]]),
        (lambda: Tensor(X + 1).inv(), 1 / (np.arange(6).reshape(2, 3) + 1)),
        (lambda: X.ptp(axis=1), [2, 2]),
        (lambda: X.top_k(2)[0], [[2, 1], [5, 4]]),
        (lambda: X.resize(3, 3), [[0, 1, 2], [3, 4, 5], [0, 0, 0]]),
        (lambda: X.itemset((0, 1), 7), [[0, 7, 2], [3, 4, 5]]),
        (lambda: X.itemset(5, 7), [[0, 1, 2], [3, 4, 7]]),
    ],
)
def test_a_method_returns_what_mindspore_returns(compute: Callable[[], Any], expected: Any) -> None:
    np.testing.assert_allclose(compute().asnumpy(), expected, rtol=1e-6)


def test_counts_and_places_are_int32() -> None:
    assert X.count_nonzero().dtype is X.top_k(1)[1].dtype is ms.int32
    assert isinstance(X.median(), tuple)


def test_a_complex_number_becomes_complex128() -> None:
    assert Tensor(1 + 2j).dtype is Tensor([0.1j]).dtype is ms.complex128
    assert Tensor(0.1j).asnumpy() == 0.1j


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: Tensor(None), TypeError),
        (lambda: Tensor(), TypeError),
        (lambda: Tensor({1: 2}), TypeError),
        (lambda: Tensor("a"), TypeError),
        (lambda: Tensor([[1], ["a"]]), TypeError),
        (lambda: Tensor([None]), TypeError),
        (lambda: untyped(X, requires_grad="yes"), TypeError),
        (lambda: untyped(X, layerwise_parallel=1), TypeError),
        (lambda: X.item(), ValueError),
        (lambda: X.itemset(7), IndexError),
        (lambda: X.itemset(99, 7), IndexError),
        (lambda: X.dot(V), ValueError),
        (lambda: X.flatten(order="K"), ValueError),
        (lambda: X.max(axis=0, where=CHOSEN), ValueError),
        (lambda: X.take(Tensor([1]), mode="raise"), NotImplementedError),
    ],
)
def test_wrong_arguments_are_refused(make: Callable[[], Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        make()


def test_a_parameter_becomes_a_number_without_a_warning() -> None:
    assert (float(Parameter(Tensor(1.5), name="p")), int(Parameter(Tensor(2.5), name="p"))) == (1.5, 2)
