"""Outputs that share memory are reported exactly, before anything is sent."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from collshim.calls.aliasing import sharing
from tests.engine.worlds import on_ranks, world

MATRIX = torch.zeros(6, 4)
APART = {
    "none": [],
    "one": [MATRIX],
    "separate": [torch.zeros(3) for _ in range(4)],
    "neighbours": list(MATRIX.unbind(0)),
    "columns": list(MATRIX.unbind(1)),
    "every other row, backwards": [MATRIX[1::2], MATRIX[::2]],
    "two halves of every row": [MATRIX[:, :2], MATRIX[:, 2:]],
    "a column in parts": [MATRIX[:3, 0], MATRIX[3:, 0], MATRIX[:, 1]],
    "empty ones of the same memory": [MATRIX[:0], MATRIX[:0], MATRIX],
    "dtypes of one memory": [MATRIX[:, :1].view(torch.int16), MATRIX[:, 1:]],
}
SHARED = {
    "the same": ([MATRIX, torch.zeros(2), MATRIX], (0, 2)),
    "a part": ([MATRIX[2], torch.zeros(2), MATRIX], (0, 2)),
    "a row and a column": ([MATRIX[:, 3], MATRIX[2]], (0, 1)),
    "columns and one of them": ([*MATRIX.unbind(1), MATRIX[5:, 1]], (1, 4)),
    "a transpose": ([MATRIX[:4].T, MATRIX[:4]], (0, 1)),
    "half an element": ([MATRIX.view(torch.int16)[:, 1::2], MATRIX[:, :1]], (0, 1)),
}


@pytest.mark.parametrize("name", APART)
def test_disjoint_tensors_are_apart(name: str) -> None:
    assert sharing(APART[name]) is None


@pytest.mark.parametrize("name", SHARED)
def test_two_tensors_sharing_an_element_are_named(name: str) -> None:
    tensors, wanted = SHARED[name]
    assert sharing(tensors) == wanted


def _addresses(tensor: Tensor) -> set[int]:
    flat = torch.arange(200)
    return set(flat.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset()).flatten().tolist())


VIEWS = st.builds(
    lambda shape, strides, offset: torch.zeros(200).as_strided(shape, strides, offset),
    st.tuples(*[st.integers(1, 4)] * 2),
    st.tuples(*[st.integers(1, 9)] * 2),
    st.integers(0, 60),
)


@settings(deadline=None, max_examples=200)
@given(st.lists(VIEWS, min_size=2, max_size=4))
def test_views_overlap_if_their_addresses_do(drawn: list[Tensor]) -> None:
    memory = torch.zeros(200)
    views = [memory.as_strided(view.shape, view.stride(), view.storage_offset()) for view in drawn]
    places = [_addresses(view) for view in views]
    pairs = [(i, j) for j in range(len(views)) for i in range(j) if places[i] & places[j]]
    found = sharing(views)
    assert found in pairs if pairs else found is None


def _gathered_into_columns() -> Any:
    comm = world()
    matrix = torch.full((5, comm.size), -1.0)
    comm.all_gather(torch.arange(5.0) + 10 * comm.rank, out=list(matrix.unbind(1))).wait()
    return matrix.tolist()


def test_columns_of_one_matrix_are_valid_outputs(transport: str) -> None:
    assert on_ranks(_gathered_into_columns, 2, transport) == [[[row, row + 10.0] for row in range(5)]] * 2
