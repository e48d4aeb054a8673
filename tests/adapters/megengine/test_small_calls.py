"""Forms of arguments of single calls: as in MegEngine 1.13.0 on CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import collshim.megengine as mge
import collshim.megengine.functional as F
import collshim.megengine.module as M

pytestmark = pytest.mark.unranked

VALUES = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]], np.float32)
X = mge.tensor(VALUES)
PIXELS = np.arange(16, dtype=np.float32).reshape(1, 4, 2, 2)
SHUFFLED = [[0, 4, 1, 5], [8, 12, 9, 13], [2, 6, 3, 7], [10, 14, 11, 15]]


@pytest.mark.parametrize("mode", ["edge", "EDGE", "replicate"])
def test_edges_are_repeated(mode: str) -> None:
    expected = np.pad(VALUES, 1, "edge").tolist()
    assert F.nn.pad(X, ((1, 1), (1, 1)), mode).numpy().tolist() == expected
    assert M.Pad(((1, 1), (1, 1)), mode)(X).numpy().tolist() == expected


def test_pad_is_a_module() -> None:
    module = M.Pad(((1, 2),), "constant", 7.0)
    assert module(X).numpy().tolist() == np.pad(VALUES, ((1, 2), (0, 0)), constant_values=7).tolist()
    assert (repr(module), module.pad_width, module.mode, module.pad_val) == ("Pad()", ((1, 2),), "constant", 7.0)


def test_pixels_are_shuffled() -> None:
    assert F.pixel_shuffle(mge.tensor(PIXELS), 2).numpy().tolist() == [[SHUFFLED]]
    module = M.PixelShuffle(2)
    assert module(mge.tensor(PIXELS[0])).numpy().tolist() == [SHUFFLED]
    assert (repr(module), module.upscale_factor) == ("PixelShuffle()", 2)
    with pytest.raises(RuntimeError, match="divisible"):
        module(mge.tensor(PIXELS[:, :3]))


def test_topk_returns_what_there_is() -> None:
    values, places = F.topk(X, k=9)
    assert values.numpy().tolist() == [[3, 1, -2], [5, 4, -6]]
    assert places.numpy().tolist() == [[2, 0, 1], [1, 0, 2]]
    assert [each.numpy().tolist() for each in F.topk(X, 9, kth_only=True)] == [[-2, -6], [1, 2]]


@pytest.mark.parametrize(("given", "expected"), [(0.5, 1.0), (-2, -1), ([0.5, -1], [1.0, -1.0])])
def test_sign_takes_numbers_and_lists(given: Any, expected: Any) -> None:
    assert F.sign(given).numpy().tolist() == expected


@pytest.mark.parametrize("axis", [[0], np.array([0]), mge.tensor([0])])
def test_softmax_takes_axes_in_all_forms(axis: Any) -> None:
    assert F.softmax(X, axis=axis).numpy().round(4).tolist() == F.softmax(X, axis=0).numpy().round(4).tolist()


@pytest.mark.parametrize("kind", [mge.tensor, mge.Tensor, mge.Parameter])
def test_none_makes_a_tensor_without_elements(kind: Any) -> None:
    made = kind(None)
    assert (made.shape, made.dtype, kind(None, dtype="int32").dtype) == ((0,), np.float32, np.int32)


def test_scalars_have_a_diagonal_and_patterns_may_be_tensors() -> None:
    assert F.diag(mge.tensor(2.0)).numpy().tolist() == [[2.0]]
    assert X.transpose(mge.tensor([1, 0])).numpy().tolist() == VALUES.T.tolist()
