"""Tests on several ranks: the marker ``ranks`` of the pytest plugin, and assertions across ranks.

    import pytest, torch
    import torch.distributed as dist

    @pytest.mark.ranks(2, 4)
    def test_total(rank, world_size):
        total = torch.tensor([rank])
        dist.all_reduce(total)
        assert total.item() == world_size * (world_size - 1) // 2

The body runs on every rank, at the same time. Ranks are threads of the test's process, which start within a
millisecond; ``@pytest.mark.ranks(4, processes=True)`` makes them processes, which stay up between tests.

| module | subject |
| --- | --- |
| ``assertions`` | the assertions |
| ``clock`` | ``sleep``, by the ranks' clock |
| ``ranks`` | the kind and the number of a test's ranks |
| ``group`` | the default group of torch.distributed |
| ``body`` | runs the test on one rank: sets up the rank's own fixtures, calls the test, tears the fixtures down |
| ``drawing`` | the values that Hypothesis draws, the same on all ranks |
| ``debugging`` | a debugger on a rank |
| ``outcomes`` | how the test ended on each rank, and which rank's outcome decides the test's |
| ``surroundings``, ``of_pytest``, ``showing`` | pytest's state in a rank's process, and how a failure there is shown |
| ``threads``, ``processes``, ``worker`` | run a body on every rank |
| ``plugin`` | the hooks of pytest |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collshim.testing.assertions import assert_equal_across_ranks, assert_same_on_one_rank
from collshim.testing.clock import sleep
from collshim.testing.ranks import Ranks

if TYPE_CHECKING:
    from collshim.invariance.assertion import assert_rank_invariant

__all__ = ["Ranks", "assert_equal_across_ranks", "assert_rank_invariant", "assert_same_on_one_rank", "sleep"]


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: few tests need these names, and their import takes a second."""
    if name == "assert_rank_invariant":
        from collshim.invariance.assertion import assert_rank_invariant

        return assert_rank_invariant
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
