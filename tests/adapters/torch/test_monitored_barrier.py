"""monitored_barrier: it names the missing ranks."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

import collshim
import collshim.torch.distributed as dist
from tests.adapters.conftest import Refused, Run, each_of

SHORT = timedelta(seconds=1)


@each_of(3, gives=[True] * 3)
def test_all_ranks_pass_repeatedly() -> bool:
    dist.monitored_barrier()
    dist.monitored_barrier(wait_all_ranks=True)
    return True


@pytest.mark.parametrize(("every", "named"), [(False, "Rank 1"), (True, "Ranks 1, 2")])
def test_rank_0_names_missing_ranks_to_all(run: Run, every: bool, named: str) -> None:
    def rank() -> str:
        other = dist.new_group()
        dist.barrier()
        if dist.get_rank() in (1, 2):
            dist.barrier(other)
            return "elsewhere"
        with pytest.raises(RuntimeError) as caught:
            dist.monitored_barrier(timeout=SHORT, wait_all_ranks=every)
        assert isinstance(caught.value, collshim.CollshimError)
        dist.barrier(other)
        return str(caught.value)

    first, *_, last = run(rank, 4)
    assert first == f"[Rank 0]: {named} failed to pass monitoredBarrier in 1000 ms"
    assert last.startswith("Rank 3 successfully reached monitoredBarrier, but received errors while waiting for")


@pytest.mark.parametrize(("every", "named"), [(False, "Rank 1"), (True, "Ranks 1")])
@pytest.mark.ranks(2)
def test_one_missing_rank_is_named_as_in_torch(every: bool, named: str) -> None:
    if dist.get_rank() == 0:
        with pytest.raises(RuntimeError, match=rf"^\[Rank 0\]: {named} failed to pass monitoredBarrier in 1000 ms"):
            dist.monitored_barrier(timeout=SHORT, wait_all_ranks=every)


@pytest.mark.ranks(2)
def test_missing_rank_0_is_reported_by_the_others() -> Any:
    group = dist.new_group(timeout=timedelta(seconds=0.2))
    if dist.get_rank() == 1:
        with pytest.raises(RuntimeError, match="Rank 1 successfully reached monitoredBarrier"):
            dist.monitored_barrier(group)
    dist.barrier()


@pytest.mark.ranks(2)
def test_group_method_exists_and_outsiders_warn() -> None:
    group: Any = dist.new_group([0])
    if group != -100:
        group.monitored_barrier(SHORT)
        return
    with pytest.warns(UserWarning, match="Running monitored_barrier on global rank 1"):
        dist.monitored_barrier(group)


@pytest.mark.ranks(1)
def test_timeout_takes_a_float_but_no_int(refused: Refused) -> None:
    with pytest.warns(UserWarning, match="Please specify timeout arg as a timedelta"):
        dist.monitored_barrier(timeout=5.0)  # type: ignore[arg-type]
    refused(TypeError, lambda: dist.monitored_barrier(timeout=5), "datetime.timedelta")  # type: ignore[arg-type]


@pytest.mark.ranks(2)
def test_zero_timeout_blames_rank_0() -> None:
    if dist.get_rank() == 0:
        with pytest.raises(RuntimeError, match="Rank 0 timed out in monitoredBarrier"):
            dist.monitored_barrier(timeout=timedelta(0))
