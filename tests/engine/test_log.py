"""The log ``collshim``: its entries for worlds and calls, and its destination."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import suppress

import pytest
import torch

import collshim
from collshim import ArgumentValueError, BrokenCommunicatorError
from collshim.log import LOG

MADE = [f"rank {rank} of 2 in world: made, of ranks (0, 1) of the world; calls are compared" for rank in range(2)]


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    level, propagate, handlers = LOG.level, LOG.propagate, list(LOG.handlers)
    yield
    LOG.setLevel(level)
    LOG.propagate, LOG.handlers[:] = propagate, handlers


def summed() -> None:
    collshim.current().communicator.all_reduce(torch.ones(3)).wait()


def called(line: int, number: int) -> list[str]:
    site = f"test_log.py:{line}"
    posted = f"posted: all_reduce(shape (3,), float32, op sum) at {site}, 12 bytes"
    states = (posted, f"done after T ms: all_reduce at {site}")
    return [f"rank {rank} of 2 in world: call {number} {state}" for rank in range(2) for state in states]


def late() -> None:
    if collshim.current().rank == 0:
        collshim.current().communicator.barrier().wait(0.05)


def refused() -> None:
    comm = collshim.current().communicator
    comm.close()
    with suppress(BrokenCommunicatorError):
        comm.barrier()


@pytest.mark.parametrize("calls", [1, 3])
def test_log_level_shows_every_call_with_its_line(caplog: pytest.LogCaptureFixture, calls: int) -> None:
    def rank() -> None:
        for _ in range(calls):
            summed()

    with caplog.at_level(logging.DEBUG, "collshim"):
        collshim.launch(rank, 2, timeout=200)
    line = summed.__code__.co_firstlineno + 1
    expected = MADE + [text for call in range(calls) for text in called(line, call + 1)]
    assert sorted(map(timeless, caplog.records)) == sorted(expected)


def timeless(record: logging.LogRecord) -> str:
    return re.sub(r"after [\d.]+ ms", "after T ms", record.getMessage())


def test_log_level_shows_how_a_call_failed(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "collshim"), pytest.raises(collshim.RankError):
        collshim.launch(late, 2, timeout=200)
    failed = [text for text in map(timeless, caplog.records) if " failed " in text]
    assert len(failed) == 1
    assert failed[0].startswith("rank 0 of 2 in world: call 1 failed after T ms: PeerError: barrier() at test_log.py:")


def test_log_level_shows_a_refused_call(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "collshim"):
        collshim.launch(refused, 1, timeout=200)
    why = "BrokenCommunicatorError: this communicator was destroyed, should be a live one"
    assert f"rank 0 of 1 in world: call 1 refused: {why}" in map(timeless, caplog.records)


@pytest.mark.parametrize(("level", "lines"), [("info", 2), ("DEBUG", 6)])
def test_variable_logs_to_standard_error_once(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], level: str, lines: int
) -> None:
    monkeypatch.setenv("COLLSHIM_LOG", level)
    collshim.launch(summed, 2, timeout=200)
    shown = capfd.readouterr().err.splitlines()
    assert len(shown) == lines
    assert all(" collshim: rank " in line for line in shown)


def test_nothing_is_logged_by_default(caplog: pytest.LogCaptureFixture) -> None:
    collshim.launch(summed, 2, timeout=200)
    assert not caplog.records


def test_invalid_log_variable_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLSHIM_LOG", "loud")
    with pytest.raises(ArgumentValueError, match="COLLSHIM_LOG is 'loud', should be info or debug"):
        collshim.launch(summed, 2, timeout=200)
