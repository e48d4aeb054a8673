"""What every run of the tests has: a scheduler for workers side by side, and ranks that hear of Ctrl-C."""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import LoadScopeScheduling

_RANKS = re.compile(r"\b(threads|processes|unchecked)\b")


def pytest_configure() -> None:
    """A job in the background of a shell ignores SIGINT, and so would every rank that the tests interrupt."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """A file's tests go to one worker; of the conformance suite those of one function and kind of ranks."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file, _, test = nodeid.partition("::")
            if "conformance/" not in file:
                return file
            ranks = _RANKS.search(test)
            return f"{file}::{test.partition('[')[0]}, {ranks[0] if ranks else 'none'}"

    return ByFile(config, log)
