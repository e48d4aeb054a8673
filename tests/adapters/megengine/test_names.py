"""MegEngine's names: one object by every path; names that are not covered."""

from __future__ import annotations

from typing import Any

import pytest

import collshim.megengine as mge

pytestmark = pytest.mark.unranked


def test_functions_are_the_same_by_both_paths() -> None:
    assert mge.distributed.functional.all_gather is mge.functional.distributed.all_gather


@pytest.mark.parametrize("module", [mge, mge.functional, mge.distributed, mge.autodiff])
def test_unknown_name_error_lists_known_names(module: Any) -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'quantization'.* covers "):
        _ = module.quantization
