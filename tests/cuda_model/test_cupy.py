"""The order between torch's streams and CuPy's, with a stand-in for CuPy, which needs a driver."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest
import torch

from collshim.arrays import stream_follower
from tests.cuda_model.hardware import require_model

require_model()


class Array:
    """A CuPy array that only knows its device."""

    device = types.SimpleNamespace(id=0)


Array.__module__ = "cupy"


@pytest.fixture
def theirs(monkeypatch: pytest.MonkeyPatch) -> torch.cuda.Stream:
    """Return the stream that CuPy works on."""
    stream = torch.cuda.Stream(0)
    cupy: Any = types.ModuleType("cupy")
    cupy.cuda = types.SimpleNamespace(
        get_current_stream=lambda number: types.SimpleNamespace(ptr=stream.cuda_stream),
    )
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    return stream


@pytest.mark.parametrize("form", [lambda x: x, lambda x: [x], lambda x: [(x, None)]], ids=["one", "list", "nested"])
def test_cupy_reads_a_result_dropped_by_torch(theirs: torch.cuda.Stream, form: Any) -> None:
    follows = stream_follower(Array())
    assert follows is not None
    found = [torch.ones(1000, device="cuda:0")]
    follows(form(found[0]))
    with torch.cuda.stream(theirs):
        seen = found[0] + 1
    found.clear()
    junk = torch.zeros(1000, device="cuda:0")
    torch.cuda.synchronize()
    assert seen.unique().tolist() == [2]
    del junk
