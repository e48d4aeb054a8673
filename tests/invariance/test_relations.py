"""How the tensors of several ranks give that of one: replicated, varying, partial, by a factor."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from collshim.invariance.relations import Tolerance, factor_of, meshes_of, relate, shares

NEAR = Tolerance(1e-6)
WHOLE = torch.randn(4, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def related(ranks: Sequence[Tensor], mesh: Sequence[int] = ()) -> tuple[tuple[str, ...], float] | None:
    found = relate(WHOLE, ranks, meshes_of(len(ranks), mesh), NEAR)
    return None if found is None else (found.axes, round(found.factor, 6))


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        ([WHOLE, WHOLE], (("R",), 1.0)),
        ([2 * WHOLE, 2 * WHOLE], (("R",), 2.0)),
        ([WHOLE[:2], WHOLE[2:]], (("V0",), 1.0)),
        ([WHOLE[:1], WHOLE[1:]], (("V0",), 1.0)),
        ([WHOLE[:, :3], WHOLE[:, 3:]], (("V1",), 1.0)),
        ([WHOLE[::2], WHOLE[1::2]], (("I0",), 1.0)),
        ([WHOLE[[3, 1]], WHOLE[[0, 2]]], (("V",), 1.0)),
        ([WHOLE - 1, torch.ones_like(WHOLE)], (("P",), 1.0)),
        ([WHOLE, WHOLE + 1], None),
        ([WHOLE, WHOLE[:2]], None),
    ],
)
def test_relation_on_a_line(ranks: Sequence[Tensor], expected: object) -> None:
    assert related(ranks) == expected


def test_relation_on_a_mesh() -> None:
    rows = [WHOLE[:2], WHOLE[2:]]
    parts = [part for row in rows for part in (row - 1, torch.ones_like(row))]
    assert related(parts, (2, 2)) == (("V0", "P"), 1.0)


def test_shares_are_those_of_unequal_parts() -> None:
    one, other = WHOLE, torch.roll(WHOLE, 1, 1)
    assert shares(0.75 * one + 0.25 * other, [one, other], NEAR) == pytest.approx([0.75, 0.25])
    assert shares(one, [one, one], NEAR) is None
    assert shares(torch.ones_like(one), [one, other], NEAR) is None


def test_factor_of_nothing_is_none() -> None:
    assert factor_of(torch.zeros(3), torch.ones(3), NEAR) is None
    assert factor_of(torch.zeros(3), torch.zeros(3), NEAR) == 1.0


def test_tolerance_grows_with_dtype_and_length() -> None:
    sizes = [Tolerance.of(dtype, 4096).relative for dtype in (torch.float64, torch.float32, torch.bfloat16)]
    assert sizes == sorted(sizes)
    assert Tolerance.of(torch.float32, 4 * 4096).relative == pytest.approx(2 * sizes[1])


def test_rounding_alone_is_no_difference() -> None:
    noisy = Tolerance.of(torch.float32, 4096, scale=1.0)
    assert factor_of(torch.full((4,), 1e-7), torch.full((4,), -1e-7), noisy) == 1.0
