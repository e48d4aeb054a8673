"""``collshim.patch`` without a framework to patch; ``tests/over_real`` tests it on a real one."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

import collshim


def test_unknown_framework_is_refused() -> None:
    with pytest.raises(collshim.ArgumentValueError, match="'jax', should be one of 'megengine'"):
        collshim.patch("jax")


@pytest.mark.skipif(find_spec("megengine") is not None, reason="the real MegEngine is installed: see make over-real")
def test_missing_framework_is_refused() -> None:
    with pytest.raises(ImportError, match=r"megengine is not installed here .*put collshim\. in front of the import"):
        collshim.patch("megengine")
