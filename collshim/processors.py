"""How many processors this process may use."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_GROUPS = Path("/proc/self/cgroup")
_MOUNTED = Path("/sys/fs/cgroup")


def usable() -> int:
    """Return how many processors this process may use: those it is bound to, or the limit of its container if lower.

    A binding is set by taskset or Slurm, for example, and a limit by ``docker run --cpus`` or Kubernetes. A fraction of
    a processor counts as one.
    """
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min((bound, *(max(1, math.ceil(limit)) for limit in _limits())))


def _limits() -> Iterator[float]:
    """Yield the limits of the control groups of this process, in processors."""
    for folder in _folders():
        with suppress(OSError, ValueError, ZeroDivisionError):
            if (file := folder / "cpu.max").exists():  # version 2 of control groups
                quota, period = file.read_text(encoding="ascii").split()
            else:
                quota, period = ((folder / f"cpu.cfs_{name}_us").read_text("ascii") for name in ("quota", "period"))
            if quota != "max" and int(quota) > 0:
                yield int(quota) / int(period)


def _folders() -> Iterator[Path]:
    """Yield the folders of the control groups that can limit this process, and of their parents.

    In a container the path can be the host's, which does not exist there; the limit is then in the topmost folder.
    """
    with suppress(OSError, ValueError):
        for line in _GROUPS.read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and "cpu" not in controllers.split(","):
                continue
            top = _MOUNTED / "cpu" if controllers else _MOUNTED
            below = top / path.lstrip("/")
            yield from (below, *(parent for parent in below.parents if parent.is_relative_to(top)))
