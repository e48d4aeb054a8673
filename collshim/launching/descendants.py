"""Find and end the processes that a rank's program has started, which must not outlive it."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

_PROCESSES = Path("/proc")
_TRACKER = b"multiprocessing.resource_tracker"
"""multiprocessing's resource tracker, which cleans up after its parent and ends with it, so it is left alone."""


class Started(NamedTuple):
    """A process: its number, and its start time, which distinguishes it from a later process with the same number."""

    pid: int
    began: str


def descendants(pid: int) -> list[Started]:
    """Return the processes that a process and its children started, on systems with ``/proc``; none on others."""
    known = dict[int, list[Started]]()
    for entry in _PROCESSES.glob("[0-9]*"):
        parts = _stat(int(entry.name))
        if parts and parts[0] != "Z" and not _is_tracker(entry):
            known.setdefault(int(parts[1]), []).append(Started(int(entry.name), parts[19]))
    found, queue = list[Started](), [pid]
    while queue:
        children = known.get(queue.pop(), [])
        found += children
        queue += [child.pid for child in children]
    return found


def end(chosen: Iterable[Started], grace: float) -> None:
    """Ask processes to end, and kill processes that still run after ``grace`` seconds."""
    left = _signal(chosen, signal.SIGTERM)
    limit = time.monotonic() + grace
    while left and time.monotonic() < limit:
        time.sleep(0.01)
        left = [one for one in left if _runs(one)]
    _signal(left, signal.SIGKILL)


def _signal(chosen: Iterable[Started], number: int) -> list[Started]:
    """Send a signal to the processes that still run, and return them."""
    left = [one for one in chosen if _runs(one)]
    for one in left:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(one.pid, number)
    return left


def _runs(one: Started) -> bool:
    parts = _stat(one.pid)
    return bool(parts) and parts[0] != "Z" and parts[19] == one.began


def _stat(pid: int) -> list[str]:
    """Return the kernel's fields about a process, from its state on; none if it has ended."""
    try:
        return (_PROCESSES / str(pid) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def _is_tracker(entry: Path) -> bool:
    try:
        return _TRACKER in (entry / "cmdline").read_bytes()
    except OSError:
        return False
