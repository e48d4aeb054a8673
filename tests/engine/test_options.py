"""Options: for a block of code, with defaults from the environment."""

from __future__ import annotations

import math
import sys
import threading
from typing import Any

import numpy as np
import pytest

from collshim import ArgumentTypeError, ArgumentValueError, Options, launch, options
from collshim.launching.kinds import RANK_KINDS
from collshim.settings import get, of_adapter
from tests.engine.worlds import world


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "COLLSHIM_MINDSPORE_GATHER",
        "COLLSHIM_TIMEOUT",
        "COLLSHIM_CHECK",
        "COLLSHIM_DEVICE",
        "COLLSHIM_DEVICES",
    ):
        monkeypatch.delenv(name, raising=False)


def test_defaults() -> None:
    assert get() == Options(300.0, None)


def test_block_changes_named_options_and_restores_them() -> None:
    with options(timeout=5.0) as outer:
        assert outer == Options(timeout=5.0)
        with options(check=False):
            assert get() == Options(timeout=5.0, check=False)
        assert get() == outer
    assert get() == Options()


def test_failing_block_restores_options() -> None:
    with pytest.raises(KeyError), options(timeout=5.0):
        raise KeyError
    assert get() == Options()


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("COLLSHIM_TIMEOUT", "2.5", Options(timeout=2.5)),
        ("COLLSHIM_CHECK", "0", Options(check=False)),
        ("COLLSHIM_CHECK", "1", Options(check=True)),
        ("COLLSHIM_DEVICE", "cpu", Options(device="cpu")),
        ("COLLSHIM_DEVICES", "2", Options(devices=2)),
    ],
)
def test_environment_sets_defaults(monkeypatch: pytest.MonkeyPatch, name: str, text: str, wanted: Options) -> None:
    monkeypatch.setenv(name, text)
    assert get() == wanted


def test_block_overrides_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLSHIM_TIMEOUT", "2")
    with options(timeout=5.0):
        assert get().timeout == 5.0
    with options(check=False):
        assert get().timeout == 2.0


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("COLLSHIM_TIMEOUT", "soon", "'soon', should be a number of seconds"),
        ("COLLSHIM_TIMEOUT", "0", "0.0, should be a positive number"),
        ("COLLSHIM_CHECK", "yes", "'yes', should be 0, 1 or sites"),
        ("COLLSHIM_DEVICE", "tpu", "'tpu', should be 'cpu' or None"),
        ("COLLSHIM_DEVICES", "0", "0, should be a positive int or None"),
        ("COLLSHIM_DEVICES", "two", "'two', should be a number of devices"),
    ],
)
def test_invalid_environment_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, text: str, wanted: str) -> None:
    monkeypatch.setenv(name, text)
    with pytest.raises(ArgumentValueError, match=wanted):
        get()


@pytest.mark.parametrize("timeout", [0, -1, math.nan, "5", None])
def test_timeout_must_be_a_positive_number(timeout: Any) -> None:
    with pytest.raises((ArgumentValueError, ArgumentTypeError), match=r"timeout is .*, should be a positive number"):
        options(timeout=timeout).__enter__()


@pytest.mark.parametrize("check", ["yes", 2, 0.0])
def test_check_is_on_off_or_default(check: Any) -> None:
    with pytest.raises((ArgumentValueError, ArgumentTypeError), match="check is"):
        options(check=check).__enter__()


def test_unknown_option_error_lists_known_ones() -> None:
    with pytest.raises(ArgumentTypeError, match="time_out are unknown, should be among check, clock, device, devices"):
        options(time_out=3).__enter__()


def test_adapter_option_prefers_block_then_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [of_adapter("mindspore_gather")]
    monkeypatch.setenv("COLLSHIM_MINDSPORE_GATHER", "stacked")
    found.append(of_adapter("mindspore_gather"))
    with options(mindspore_gather="concatenated"), options(timeout=5.0):
        found.append(of_adapter("mindspore_gather"))
    assert found == ["concatenated", "stacked", "concatenated"]
    with pytest.raises(ArgumentTypeError, match="mindspore_nothing is in no framework's entry"):
        of_adapter("mindspore_nothing")


def test_adapter_option_must_be_a_known_value(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = "mindspore_gather is 'sideways', should be one of .*concatenated.*stacked"
    with pytest.raises(ArgumentValueError, match=refused):
        options(mindspore_gather="sideways").__enter__()
    monkeypatch.setenv("COLLSHIM_MINDSPORE_GATHER", "sideways")
    with pytest.raises(ArgumentValueError, match=refused):
        of_adapter("mindspore_gather")


def test_another_thread_has_its_own_options() -> None:
    seen: list[Options] = []
    with options(timeout=5.0):
        thread = threading.Thread(target=lambda: seen.append(get()))
        thread.start()
        thread.join(10)
    # A free-threaded Python copies context variables into new threads.
    inherits = bool(getattr(sys.flags, "thread_inherit_context", False))
    assert seen == [Options(timeout=5.0) if inherits else Options()]


def _total() -> Any:
    return int(world().all_reduce(np.array(1)).wait())


@pytest.mark.parametrize("ranks", RANK_KINDS)
def test_infinite_timeout_waits_forever(ranks: str) -> None:
    with options(timeout=math.inf):
        assert launch(_total, 2, ranks=ranks, timeout=200) == [2, 2]
