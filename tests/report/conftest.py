"""A small grid made by running cases, and one made by hand, with every outcome."""

from __future__ import annotations

import pytest

from collshim.conformance.report.results import BEYOND, DEVIATION, FAIL, PASS, CaseResult, Grid


@pytest.fixture
def grid() -> Grid:
    """Make a grid of every outcome, two dialects and both transports; no case was run."""
    grid = Grid({"line": "collshim, by hand.", "date": "2026-01-01"})
    gather = grid.cell("all_gather", "torch", "threads").function("torch.distributed.all_gather")
    gather.cases += [_told("all_gather", 1, PASS), _told("all_gather", 2, PASS)]
    gather.recorded += [
        CaseResult("all_gather/2d@2", DEVIATION, "a reason\nrank 0: x", "dist.all_gather(outs, x)", ("x = 1",))
    ]
    grid.cell("all_gather", "torch", "processes").function("torch.distributed.all_gather").cases += [
        _told("all_gather", 3, FAIL, "rank 1: output is (4, 8) float32, should be (2, 8) float32 </script>")
    ]
    barrier = grid.cell("barrier", "oneflow", "threads").function("oneflow.comm.barrier")
    barrier.recorded += [CaseResult("comm.barrier/plain@2", BEYOND, "the real framework hung")]
    grid.cell("barrier", "torch", "threads").function("torch.distributed.barrier[async]").missing = True
    return grid


def _told(collective: str, seed: int, outcome: str, why: str = "") -> CaseResult:
    return CaseResult(f"Case('{collective}', seed={seed})", outcome, why, inputs=("1", "2"), answers=("3", "3"))
