"""Forms of parts are views of one another, along every axis."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from collshim.layout import concatenated, cut, fill, flat, joined, listed, split

SHAPES = [(), (3,), (3, 4), (2, 3, 4), (0, 3), (3, 0), (1,)]
AXES = [(shape, axis) for shape in SHAPES for axis in range(-len(shape), len(shape)) or [0]]


def numbered(*shape: int) -> Tensor:
    return torch.arange(math.prod(shape)).view(shape)


def shares_memory(one: Tensor, other: Tensor) -> bool:
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()


@pytest.mark.parametrize(("shape", "axis"), AXES)
def test_concatenated_matches_torch_cat_along_every_axis(shape: tuple[int, ...], axis: int) -> None:
    stacked = numbered(2, *shape)
    wanted = torch.cat(list(stacked), dim=axis) if shape else stacked
    assert torch.equal(concatenated(stacked, axis), wanted)


@pytest.mark.parametrize("shape", SHAPES)
def test_concatenated_along_the_first_axis_is_a_view(shape: tuple[int, ...]) -> None:
    stacked = numbered(2, *shape)
    assert shares_memory(concatenated(stacked), stacked)


@pytest.mark.parametrize(("shape", "axis"), [known for known in AXES if known[0]])
def test_split_undoes_concatenated(shape: tuple[int, ...], axis: int) -> None:
    stacked = numbered(2, *shape)
    assert torch.equal(split(concatenated(stacked, axis), 2, axis), stacked)


@pytest.mark.parametrize(("shape", "axis"), [known for known in AXES if known[0]])
def test_split_matches_torch_chunk_and_is_a_view(shape: tuple[int, ...], axis: int) -> None:
    longer = [length * 3 if index == axis % len(shape) else length for index, length in enumerate(shape)]
    whole = numbered(*longer)
    parts = split(whole, 3, axis)
    assert torch.equal(parts, torch.stack(whole.chunk(3, axis)) if whole.numel() else parts)
    assert tuple(parts.shape) == (3, *shape)
    assert shares_memory(parts, whole)


@pytest.mark.parametrize("shape", SHAPES)
def test_listed_gives_views_of_each_part(shape: tuple[int, ...]) -> None:
    stacked = numbered(2, *shape)
    parts = listed(stacked)
    assert [part.shape for part in parts] == [torch.Size(shape)] * 2
    assert all(torch.equal(part, wanted) for part, wanted in zip(parts, stacked, strict=True))
    assert all(shares_memory(part, stacked) for part in parts)


def test_listed_returns_the_tensors_of_a_list() -> None:
    parts = (numbered(2), numbered(3))
    assert all(one is other for one, other in zip(listed(parts), parts, strict=True))


RAGGED = [[(2, 3), (), (0, 3), (4,)], [(), ()], [(0,), (0,)], [(3,)]]


@pytest.mark.parametrize("shapes", RAGGED)
def test_cut_gives_views_in_order(shapes: list[tuple[int, ...]]) -> None:
    whole = numbered(sum(math.prod(shape) for shape in shapes))
    parts = cut(whole, shapes)
    assert [tuple(part.shape) for part in parts] == shapes
    assert all(shares_memory(part, whole) for part in parts)
    assert torch.equal(torch.cat([part.reshape(-1) for part in parts]), whole)


@pytest.mark.parametrize("shapes", RAGGED)
def test_joined_accepts_consecutive_parts(shapes: list[tuple[int, ...]]) -> None:
    whole = numbered(sum(math.prod(shape) for shape in shapes))
    found = joined(cut(whole, shapes))
    assert found is not None
    assert torch.equal(found, whole)
    assert shares_memory(found, whole)


def test_joined_parts_can_start_within_their_memory() -> None:
    whole = numbered(10)
    found = joined([whole[2:5], whole[5:9]])
    assert found is not None
    assert torch.equal(found, whole[2:9])


APART = {
    "a gap": [numbered(9)[:3], numbered(9)[4:]],
    "another order": [numbered(6)[3:], numbered(6)[:3]],
    "other memory": [numbered(3), numbered(3)],
    "strides": [numbered(3, 2)[:, 0], numbered(3, 2)[:, 1]],
}


@pytest.mark.parametrize("parts", APART.values(), ids=APART)
def test_joined_rejects_other_parts(parts: list[Tensor]) -> None:
    assert joined(parts) is None
    assert torch.equal(flat(parts), torch.cat([part.reshape(-1) for part in parts]))


def test_gap_in_the_same_memory_is_detected() -> None:
    whole = numbered(9)
    assert joined([whole[:3], whole[4:]]) is None
    assert joined([whole[3:], whole[:3]]) is None
    assert joined([whole[:3], whole[:3]]) is None


def test_contiguous_stacked_tensor_is_joined() -> None:
    assert joined(numbered(2, 3)) is not None
    assert joined(numbered(3, 2).t()) is None


FORMS = {
    "stacked": lambda: torch.zeros(3, 2, dtype=torch.int64),
    "list": lambda: [torch.zeros(2, dtype=torch.int64) for _ in range(3)],
    "strided": lambda: torch.zeros(2, 3, dtype=torch.int64).t(),
}


@pytest.mark.parametrize("out", FORMS)
@pytest.mark.parametrize("given", FORMS)
def test_fill_writes_any_form_into_any_other(given: str, out: str) -> None:
    source, target = FORMS[given](), FORMS[out]()  # type: ignore[no-untyped-call]
    for rank, part in enumerate(listed(source)):  # type: ignore[arg-type]
        part.fill_(rank + 1)
    fill(target, source)  # type: ignore[arg-type]
    assert [part.tolist() for part in listed(target)] == [[1, 1], [2, 2], [3, 3]]  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint16, torch.uint64, torch.float8_e4m3fn, torch.complex128])
def test_every_dtype_is_cut_joined_and_filled(dtype: torch.dtype) -> None:
    whole = torch.zeros(6, dtype=dtype)
    parts = [torch.ones(2, dtype=dtype) for _ in range(3)]
    fill(cut(whole, [(2,)] * 3), parts)
    assert whole.to(torch.complex64).tolist() == [1] * 6
    stacked = torch.zeros(3, 2, dtype=dtype)
    fill(stacked, parts)
    assert flat(parts).to(torch.complex64).tolist() == stacked.view(-1).to(torch.complex64).tolist() == [1] * 6
