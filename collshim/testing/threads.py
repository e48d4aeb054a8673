"""Runs a test on ranks that are threads of this process."""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import collshim
from collshim.errors import RankError
from collshim.launching.pausing import PAUSING
from collshim.testing.debugging import TURN
from collshim.testing.outcomes import UNKNOWN, Outcome
from collshim.testing.ranks import Ranks


def run(body: Callable[[], None], ranks: Ranks, *, splits_output: bool) -> list[Outcome]:
    """Run a body on every rank; return the outcomes, by rank."""
    outcomes: list[Outcome | None] = [None] * ranks.size
    limit = PAUSING.now() + ranks.timeout
    texts = [io.StringIO() for _ in range(ranks.size)]

    def on_rank() -> None:
        rank, error = collshim.current().rank, None
        try:
            body()
        except BaseException as raised:
            error = raised
            raise
        finally:
            TURN.leave(rank)
            if PAUSING.now() < limit:
                outcomes[rank] = Outcome.of(error)

    late: dict[int, str] = {}
    chosen = collshim.options(clock=ranks.clock, timeout=ranks.timeout_of_calls())
    with split_output(texts if splits_output else []) as split, chosen:
        try:
            collshim.launch(split.on(on_rank), ranks.size, timeout=ranks.timeout)
        except RankError as failure:
            late = failure.late
    unknown = [Outcome(UNKNOWN, f"it {late[rank]}" if rank in late else "") for rank in range(ranks.size)]
    found = [outcome or other for outcome, other in zip(outcomes, unknown, strict=True)]
    for outcome, text in zip(found, texts, strict=True):
        outcome.output = text.getvalue()
    return found


class Split:
    """Redirects the output of each rank's thread to a separate text."""

    def __init__(self, texts: list[io.StringIO]) -> None:
        self._texts = texts
        self._local = threading.local()

    def on(self, call: Callable[[], None]) -> Callable[[], None]:
        """Return a function that calls ``call`` with its thread's output redirected."""

        def with_text() -> None:
            if self._texts:
                self._local.text = self._texts[collshim.current().rank]
            call()

        return with_text

    def stream(self, other: Any) -> Any:
        """Return a stream that replaces ``other``; threads that are not ranks still write to ``other``."""
        return _Stream(self._local, other)


class _Stream:
    def __init__(self, local: Any, other: Any) -> None:
        self._local, self._other = local, other

    def _target(self) -> Any:
        return getattr(self._local, "text", self._other)

    def write(self, text: str) -> Any:
        return self._target().write(text)

    def writelines(self, lines: Any) -> None:
        self._target().writelines(lines)

    def flush(self) -> None:
        self._target().flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._other, name)


@contextmanager
def split_output(texts: list[io.StringIO]) -> Iterator[Split]:
    """Redirect the standard output and error of each rank to its text inside the block, if there are texts."""
    split, kept = Split(texts), (sys.stdout, sys.stderr)

    def begin() -> None:
        sys.stdout, sys.stderr = split.stream(kept[0]), split.stream(kept[1])

    if not texts:
        yield split
        return
    begin()
    TURN.on_leave = begin  # pytest's debugger has replaced the streams: redirect them again
    try:
        yield split
    finally:
        TURN.on_leave = _nothing
        sys.stdout, sys.stderr = kept


def _nothing() -> None:
    """Do nothing after a debugger ends."""
