"""MegEngine's names: one object by every path; those that are not covered."""

from __future__ import annotations

from typing import Any

import pytest

import collshim.megengine as mge

pytestmark = pytest.mark.unranked


def test_both_paths_lead_to_the_same_functions() -> None:
    assert mge.distributed.functional.all_gather is mge.functional.distributed.all_gather


@pytest.mark.parametrize("module", [mge, mge.functional, mge.distributed, mge.autodiff])
def test_a_name_that_is_not_covered_says_what_is(module: Any) -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'quantization'.* covers "):
        _ = module.quantization
