"""MegEngine's names: one object by every path; names that are not covered."""

from __future__ import annotations

import pytest

import collshim.megengine as mge

pytestmark = pytest.mark.unranked


def test_functions_are_the_same_by_both_paths() -> None:
    assert mge.distributed.functional.all_gather is mge.functional.distributed.all_gather
