"""The distributed tests that ship inside the installed torch, as a test case; by default on collshim's stand-in.

Environment, read when this is imported: WORLD_SIZE, the number of ranks; COLLSHIM_UPSTREAM, "torch" for torch itself
over gloo. Ranks are forked from a server that has imported everything, so that 131 tests take minutes and not an hour.
"""

from __future__ import annotations

import multiprocessing
import os
import re
from collections.abc import Callable
from typing import Any

from torch.testing._internal import common_distributed, common_utils

import collshim.torch.distributed as stand_in
from collshim.torch.distributed import distributed_c10d

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
_skip_if = common_utils.skip_but_pass_in_sandcastle_if


def _unchanged(test: Callable[..., Any]) -> Callable[..., Any]:
    return test


def _skip_unless_lifted(condition: bool, reason: str) -> Decorator:
    """Skip a test, but not for torch's reason that all_to_all needs MPI, from a time when gloo had none."""
    lifted = reason.startswith("Only MPI supports")
    return _unchanged if lifted else _skip_if(condition, reason)  # type: ignore[no-untyped-call]


# Before torch's tests are imported, which then decorate themselves.
common_utils.skip_but_pass_in_sandcastle_if = _skip_unless_lifted
if os.environ["WORLD_SIZE"] != "2":  # torch wants 8 ranks for groups of two of them; 4 suffice
    common_distributed.skip_if_small_worldsize = _unchanged

from torch.testing._internal.distributed import distributed_test  # noqa: E402
from torch.testing._internal.distributed.distributed_test import DistributedTest, TestDistBackend  # noqa: E402

ELSEWHERE = re.compile(
    "_cuda|_nccl|nccl_|ddp|DDP|DistributedDataParallel|SyncBatchNorm|sync_bn|no_sync|localSGD|averager|"
    "average_parameters|DistributedSampler|static_graph|model|bucket|unused|undefined|data_parallel|different_graph"
)
"""Tests of DistributedDataParallel and related features, and those that only NCCL runs."""

if os.environ.get("COLLSHIM_UPSTREAM") != "torch":
    distributed_test.dist = stand_in
    distributed_test._get_default_group = distributed_c10d._get_default_group
    distributed_test.get_world_size = stand_in.get_world_size
    common_distributed.c10d = stand_in


class UpstreamTests(TestDistBackend, DistributedTest._DistTestBase):
    """Torch's tests; each starts its ranks."""

    def setUp(self) -> None:
        super().setUp()  # type: ignore[no-untyped-call]
        self._start_processes(_process)


def names() -> list[str]:
    """Return the tests of collectives, sends and receives, groups, objects and barriers."""
    return [name for name in sorted(dir(UpstreamTests)) if name.startswith("test_") and not ELSEWHERE.search(name)]


def _process(target: Callable[..., None], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    context = multiprocessing.get_context("forkserver")
    return context.Process(target=_as_rank, name=name, args=(dict(os.environ), target, args, kwargs))


def _as_rank(
    environment: dict[str, str], target: Callable[..., None], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Run in the rank's process, which has the server's environment: each test has its own folders."""
    os.environ.update(environment)
    distributed_test.INIT_METHOD = environment["INIT_METHOD"]
    target(*args, **kwargs)
