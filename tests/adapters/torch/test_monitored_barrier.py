"""monitored_barrier: who did not come."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

import collshim
import collshim.torch.distributed as dist

if TYPE_CHECKING:
    from tests.adapters.conftest import Refused, Run

SHORT = timedelta(seconds=1)


def test_all_ranks_come_again_and_again(run: Run) -> None:
    def rank() -> bool:
        dist.monitored_barrier()
        dist.monitored_barrier(wait_all_ranks=True)
        return True

    assert run(rank, 3) == [True] * 3


@pytest.mark.parametrize(("every", "named"), [(False, "Rank 1"), (True, "Ranks 1, 2")])
def test_rank_0_names_who_did_not_come_and_the_others_hear_of_it(run: Run, every: bool, named: str) -> None:
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
def test_one_absent_rank_is_named_as_torch_names_it(run: Run, every: bool, named: str) -> None:
    def rank() -> None:
        if dist.get_rank() == 0:
            with pytest.raises(RuntimeError, match=rf"^\[Rank 0\]: {named} failed to pass monitoredBarrier in 1000 ms"):
                dist.monitored_barrier(timeout=SHORT, wait_all_ranks=every)

    run(rank, 2)


def test_where_rank_0_does_not_come_the_others_say_so(run: Run) -> None:
    def rank() -> Any:
        group = dist.new_group(timeout=timedelta(seconds=0.2))
        if dist.get_rank() == 1:
            with pytest.raises(RuntimeError, match="Rank 1 successfully reached monitoredBarrier"):
                dist.monitored_barrier(group)
        dist.barrier()

    run(rank, 2)


def test_a_group_has_it_as_a_method_and_outside_it_is_a_warning(run: Run) -> None:
    def rank() -> None:
        group: Any = dist.new_group([0])
        if group != -100:
            group.monitored_barrier(SHORT)
            return
        with pytest.warns(UserWarning, match="Running monitored_barrier on global rank 1"):
            dist.monitored_barrier(group)

    run(rank, 2)


def test_a_float_is_taken_for_seconds_and_an_int_is_refused(run: Run, refused: Refused) -> None:
    def rank() -> None:
        with pytest.warns(UserWarning, match="Please specify timeout arg as a timedelta"):
            dist.monitored_barrier(timeout=5.0)  # type: ignore[arg-type]
        refused(TypeError, lambda: dist.monitored_barrier(timeout=5), "datetime.timedelta")  # type: ignore[arg-type]

    run(rank, 1)


def test_no_time_at_all_is_rank_0s_own_fault(run: Run) -> None:
    def rank() -> None:
        if dist.get_rank() == 0:
            with pytest.raises(RuntimeError, match="Rank 0 timed out in monitoredBarrier"):
                dist.monitored_barrier(timeout=timedelta(0))

    run(rank, 2)
