"""``oneflow.unittest``: the base class and the decorators of tests written for OneFlow 0.9.0.

A test for a number of machines and devices is skipped elsewhere. ONEFLOW_TEST_NODE_NUM and ONEFLOW_TEST_DEVICE_NUM set
these numbers, as for OneFlow. If they are not set, the numbers are those of the joined world, or of the world that the
launcher describes; OneFlow assumes one of each.
"""

from __future__ import annotations

import os
import unittest
from collections.abc import Callable
from typing import Any

from collshim import environment, world
from collshim.adapting.absent import saying


class TestCase(unittest.TestCase):
    """Python's base class of tests."""


def node_size() -> int:
    """Return the number of machines that the tests run on."""
    named = os.environ.get("ONEFLOW_TEST_NODE_NUM")
    if named is not None:
        return int(named)
    nodes = os.environ.get("ONEFLOW_TEST_NODE_LIST")
    if nodes is not None:
        return len(nodes.split(","))
    size, local_size = _world()
    return -(-size // local_size)


def device_num() -> int:
    """Return the number of devices on each machine, which is its number of ranks."""
    named = os.environ.get("ONEFLOW_TEST_DEVICE_NUM")
    return int(named) if named is not None else _world()[1]


def _world() -> tuple[int, int]:
    """Return the number of ranks and of ranks on this machine, from the joined world or the launcher's variables."""
    own: Any = world.peek() or environment.read(None, None, None, None, needs_address=False, overrides=True)
    return own.size, own.local_size


def skip_unless(n: int, d: int) -> Callable[[Any], Any]:
    """Skip a test or a test class unless there are ``n`` machines with ``d`` devices each."""
    if (node_size(), device_num()) == (n, d):
        return lambda test: test
    return unittest.skip(f"only runs when node_size is {n} and device_num is {d}")


def skip_unless_1n1d() -> Callable[[Any], Any]:
    """Skip a test unless there is one device."""
    return skip_unless(1, 1)


def skip_unless_1n2d() -> Callable[[Any], Any]:
    """Skip a test unless there is one machine with two devices."""
    return skip_unless(1, 2)


def skip_unless_1n4d() -> Callable[[Any], Any]:
    """Skip a test unless there is one machine with four devices."""
    return skip_unless(1, 4)


def skip_unless_2n1d() -> Callable[[Any], Any]:
    """Skip a test unless there are two machines with one device each."""
    return skip_unless(2, 1)


def skip_unless_2n2d() -> Callable[[Any], Any]:
    """Skip a test unless there are two machines with two devices each."""
    return skip_unless(2, 2)


def skip_unless_2n4d() -> Callable[[Any], Any]:
    """Skip a test unless there are two machines with four devices each."""
    return skip_unless(2, 4)


def num_nodes_required(num_nodes: int) -> Callable[[Any], Any]:
    """Record on a test how many machines it needs."""

    def note(test: Any) -> Any:
        test.__oneflow_test_case_num_nodes_required__ = num_nodes
        return test

    return note


__getattr__ = saying(__name__)
