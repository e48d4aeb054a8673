"""A call's objects are freed with it, without the garbage collector."""

from __future__ import annotations

import gc

import torch

from collshim.calls.plan import Plan
from tests.engine.worlds import on_ranks, world


def drops_calls_whose_plans_are_not_kept() -> int:
    comm = world()
    comm.barrier().wait()
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            comm.all_reduce_coalesced([torch.ones(1), torch.ones(2, dtype=torch.float64)]).wait()
            comm.all_to_all([torch.ones(1), torch.ones(2)], discovers=True).wait()
        comm.barrier().wait()
        return sum(isinstance(one, Plan) for one in gc.get_objects())
    finally:
        gc.enable()


def test_unused_plans_are_freed_at_once() -> None:
    """The barrier's plan is kept."""
    assert on_ranks(drops_calls_whose_plans_are_not_kept, 2, "processes") == [1, 1]
