"""Yama: ranks permit each other to read their memory if the system asks for that."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

import pytest

import collshim
from collshim.launching import info
from collshim.transports.shared_memory import core, yama
from tests.engine.worlds import world


@pytest.fixture
def scope(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file that stands for the system's setting; it does not exist yet."""
    file = tmp_path / "ptrace_scope"
    monkeypatch.setattr(yama, "_SCOPE", file)
    return file


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Return the list to which ``prctl`` adds its first two arguments."""
    found: list[tuple[int, int]] = []
    monkeypatch.setattr(yama, "_prctl", lambda what, whom, *rest: found.append((what, whom.value)))
    return found


def test_permission_is_given_if_the_system_asks(scope: Path, calls: list[tuple[int, int]]) -> None:
    scope.write_text("1\n")
    yama.permit_reads()
    assert calls == [(0x59616D61, ctypes.c_ulong(-1).value)]


@pytest.mark.parametrize("setting", ["0\n", "2\n", "3\n", ""])
def test_no_permission_is_given_otherwise(setting: str, scope: Path, calls: list[tuple[int, int]]) -> None:
    scope.write_text(setting)
    yama.permit_reads()
    assert calls == []


@pytest.mark.usefixtures("scope")
def test_no_permission_is_given_without_yama(calls: list[tuple[int, int]]) -> None:
    yama.permit_reads()
    assert calls == []


@pytest.mark.parametrize(("setting", "text"), [("0", ""), ("1", ""), ("2", "ptrace_scope is 2"), ("3", "scope is 3")])
def test_refusal_names_the_setting(setting: str, text: str, scope: Path) -> None:
    scope.write_text(setting)
    assert yama.refusal().endswith(text)
    assert bool(yama.refusal()) is bool(text)


def test_info_names_the_setting(scope: Path) -> None:
    scope.write_text("2")
    line = next(line for line in info.lines("1") if line.startswith("core"))
    assert line.endswith("; data of more than 64 KB is copied twice, because kernel.yama.ptrace_scope is 2")


def reads_far() -> Any:
    shared: Any = world()._transport
    return shared.shared.reads_far


@pytest.mark.processes
def test_ranks_read_each_others_memory_unless_the_system_forbids_it() -> None:
    word = ctypes.c_uint64(7)
    target = ctypes.c_uint64()
    place = ctypes.addressof(word), ctypes.addressof(target), 8
    can_read = core.read_far is not None and core.read_far(os.getpid(), *place)
    expected = can_read and not yama.refusal()
    assert collshim.launch(reads_far, 2, ranks="processes", timeout=200) == [expected] * 2
