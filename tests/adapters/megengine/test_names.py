"""MegEngine's names: one object by every path; names that are not covered."""

from __future__ import annotations

import pytest

import collshim.megengine as mge
from collshim.megengine import config
from collshim.megengine.autodiff.grad_manager import GradManager, get_backwarding_grad_manager
from collshim.megengine.core import get_option, set_option

pytestmark = pytest.mark.unranked


def test_functions_are_the_same_by_both_paths() -> None:
    assert mge.distributed.functional.all_gather is mge.functional.distributed.all_gather


def test_switches_keep_their_values() -> None:
    assert (config.async_level, get_option("async_level"), config.benchmark_kernel) == (2, 2, False)
    with config._override(benchmark_kernel=True, async_level=0):
        assert (config.async_level, config.benchmark_kernel, config.deterministic_kernel) == (0, True, False)
    assert (config.async_level, config.benchmark_kernel) == (2, False)
    set_option("async_level", 1)
    assert get_option("async_level") == 1
    set_option("async_level", 2)


def test_callback_finds_the_manager_of_the_backward() -> None:
    x, seen = mge.tensor([1.0]), list[object]()

    def note(tensor: object, grad: object) -> object:
        seen.append(get_backwarding_grad_manager())
        return grad

    manager = GradManager().attach([x], callbacks=note)
    with manager:
        manager.backward(x * 2)
    assert seen == [manager]
    assert get_backwarding_grad_manager() is None


def test_programs_may_wait_and_find_the_loggers() -> None:
    mge._full_sync()
    found = mge.get_logger("collshim.megengine.test_names")
    assert found in mge.logger._all_loggers  # basecore takes them from here
