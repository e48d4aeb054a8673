"""The log ``collshim``: its entries for worlds and calls, and its destination."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
import torch

import collshim
from collshim import ArgumentValueError
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


def called(line: int) -> list[str]:
    text = f"all_reduce(shape (3,), float32, op sum) at test_log.py:{line}"
    return [f"rank {rank} of 2 in world: {text}" for rank in range(2)]


@pytest.mark.parametrize("calls", [1, 3])
def test_log_level_shows_every_call_with_its_line(caplog: pytest.LogCaptureFixture, calls: int) -> None:
    def rank() -> None:
        for _ in range(calls):
            summed()

    with caplog.at_level(logging.DEBUG, "collshim"):
        collshim.launch(rank, 2, timeout=30)
    line = summed.__code__.co_firstlineno + 1
    assert sorted(record.getMessage() for record in caplog.records) == sorted(MADE + called(line) * calls)


@pytest.mark.parametrize(("level", "lines"), [("info", 2), ("DEBUG", 4)])
def test_variable_logs_to_standard_error_once(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], level: str, lines: int
) -> None:
    monkeypatch.setenv("COLLSHIM_LOG", level)
    collshim.launch(summed, 2, timeout=30)
    shown = capfd.readouterr().err.splitlines()
    assert len(shown) == lines
    assert all(" collshim: rank " in line for line in shown)


def test_nothing_is_logged_by_default(caplog: pytest.LogCaptureFixture) -> None:
    collshim.launch(summed, 2, timeout=30)
    assert not caplog.records


def test_invalid_log_variable_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLSHIM_LOG", "loud")
    with pytest.raises(ArgumentValueError, match="COLLSHIM_LOG is 'loud', should be info or debug"):
        collshim.launch(summed, 2, timeout=30)
