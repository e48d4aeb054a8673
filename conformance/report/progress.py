"""The progress of a run: a bar if rich is installed and the output is a terminal, and occasional lines otherwise."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from collshim.conformance.report.runner import Progress

_SECONDS = 10.0  # between two lines


@contextmanager
def shown() -> Iterator[Progress]:
    """Yield a progress display for the duration of the block, on standard error."""
    if not sys.stderr.isatty():
        yield Lines()
        return
    try:
        import rich.progress as bars
    except ModuleNotFoundError:  # rich is an extra
        yield Lines()
        return
    columns = (
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TimeElapsedColumn(),
        bars.TextColumn("{task.description}"),
    )
    from rich.console import Console

    with bars.Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield _Bar(progress)


class Lines:
    """Prints a line whenever another part begins, and every ten seconds."""

    def __init__(self) -> None:
        self._total = self._done = 0
        self._what = ""
        self._printed_at = 0.0

    def start(self, total: int) -> None:
        """Add ``total`` cases to the expected number."""
        self._total += total

    def step(self, what: str, count: int = 1) -> None:
        """Count ``count`` cases of ``what`` as done."""
        self._done += count
        if what != self._what or monotonic() - self._printed_at > _SECONDS or self._done == self._total:
            self._what, self._printed_at = what, monotonic()
            print(f"{self._done:>6} of {self._total}  {what}", file=sys.stderr, flush=True)


class _Bar:
    def __init__(self, progress: Any) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None)

    def start(self, total: int) -> None:
        self._progress.update(self._task, total=total)

    def step(self, what: str, count: int = 1) -> None:
        self._progress.update(self._task, advance=count, description=what)
