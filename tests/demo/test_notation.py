"""The notation of results."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import collshim.tensorflow as tf
from collshim.demo import notation

ONE = torch.tensor([1, 2])
TWO = torch.tensor([[1.0, 2.5]])
ROOTS = torch.tensor([1 + 1j, complex(0, -2)])
STRATEGY = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
REPLICAS = STRATEGY.experimental_distribute_values_from_function(lambda context: torch.tensor([1]))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        (ONE, "tensor"),
        ((ONE, None), "(tensor, None)"),
        ([ONE, ONE], "[t, t]"),
        ({"a": ONE, "b": (ONE,)}, "{a: t, b: (t)}"),
        (REPLICAS, "PerReplica{0: t, 1: t}"),
        (STRATEGY, "MirroredStrategy"),
    ],
)
def test_structure(value: Any, text: str) -> None:
    assert notation.structure(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        (ONE, "[1 2]"),
        (torch.tensor(7), "7"),
        (TWO, "[[1. 2.5]]"),
        (ROOTS, "[1+1j 0-2j]"),
        ([ONE, TWO], "[1 2] [[1. 2.5]]"),
        ({"a": ONE, "b": ONE}, "a: [1 2]  b: [1 2]"),
    ],
)
def test_values_for_people(value: Any, text: str) -> None:
    assert notation.short(value) == text


def test_values_for_comparison() -> None:
    value = {"a": [ONE, None], 1: ROOTS}
    assert notation.plain(value) == {"a": [[1, 2], None], "1": ["1+1j", "0-2j"]}


def test_dtypes_of_all_tensors() -> None:
    assert notation.dtype({"a": [ONE, TWO]}) == "float32, int64"
    assert notation.dtype(None) == ""
