"""The time to make a group of processes, and of its first call, over gloo and over collshim."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.distributed

import collshim
import collshim.torch.distributed as shim
from tests.benchmarks.measure import DEADLINE, Samples, figures, ratio_of_tenths, slowest
from tests.benchmarks.ranks import adapter_group, torchs_gloo

STEPS = ("new_group", "its first all_reduce")
GLOO, COLLSHIM = "gloo", "collshim.torch"

Makings = Mapping[tuple[str, int], Samples]
"""The seconds of each step in worlds of each size."""


def measure_making(sizes: Sequence[int], repeats: int) -> Makings:
    """Make so many groups of all ranks, in worlds of these sizes."""
    found = dict[tuple[str, int], Samples]()
    for size in sizes:
        times = collshim.launch(among, size, ranks="processes", args=(repeats,), timeout=DEADLINE)
        found |= {(step, size): slowest([own[step] for own in times]) for step in STEPS}
    return found


def among(repeats: int) -> dict[str, dict[str, list[float]]]:
    """Measure one rank's times; the contenders take turns."""
    found = {step: {GLOO: list[float](), COLLSHIM: list[float]()} for step in STEPS}
    with torchs_gloo(collshim.current()) as barrier, adapter_group():
        for number in range(repeats + 1):
            for kind, dist in ((GLOO, torch.distributed), (COLLSHIM, shim)):
                barrier()
                for step, seconds in zip(STEPS, _seconds(dist), strict=True):
                    found[step][kind] += [seconds] if number else []  # the first group is not counted
    return found


def _seconds(dist: Any) -> list[float]:
    start = time.perf_counter()
    group = dist.new_group()
    made = time.perf_counter()
    dist.all_reduce(torch.ones(1), group=group)
    over = time.perf_counter()
    dist.destroy_process_group(group)
    return [made - start, over - made]


def rows(found: Makings) -> list[list[str]]:
    """Return each step in each world: the contenders' figures, and the ratio of their tenth percentiles."""
    return [
        [step, str(size), *map(str, figures(times).values()), f"{ratio_of_tenths(times, COLLSHIM, GLOO):.1f}"]
        for (step, size), times in found.items()
    ]
