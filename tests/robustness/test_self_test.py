"""``collshim test``: every trial, the exit code, and the sentence at the end."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import Any

import pytest

import collshim
from collshim.communicator import Communicator
from collshim.errors import RankError, WorldError
from collshim.launching import self_test
from collshim.launching.self_test import Trial


def _refuse() -> None:
    raise WorldError("no memory to share")


def _launch_refusing() -> str:
    collshim.launch(_refuse, 2)
    return "never"


def _fail() -> str:
    raise OSError("no loopback\nno network")


def _tell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *trials: Trial) -> tuple[int, list[str]]:
    monkeypatch.setattr(self_test, "trials", lambda: iter(trials))
    return self_test.start(), capsys.readouterr().out.splitlines()


@pytest.mark.processes
def test_all_of_it_works_here() -> None:
    words = [sys.executable, "-m", "collshim", "test"]
    unchecked = os.environ | {"COLLSHIM_CHECK": "0"}  # which concerns the user's programs alone
    ended = subprocess.run(words, env=unchecked, capture_output=True, text=True, timeout=240, check=False)
    assert ended.returncode == 0, ended
    *lines, empty, verdict = ended.stdout.splitlines()
    assert all(re.match(r".+ ok +\d", line) for line in lines), lines
    begins = "threads ", "processes over shared memory ", "processes over gloo ", "collshim run "
    assert all(any(line.startswith(name) for line in lines) for name in begins), lines
    assert not empty
    assert verdict.startswith(f"collshim {collshim.__version__} works on this machine: threads,")


def test_failed_trial_is_shown_and_named_in_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, lines = _tell(monkeypatch, capsys, Trial("threads", lambda: "24 calls"), Trial("gloo", _fail))
    assert code == 1
    assert re.fullmatch(r"gloo +FAILED +0\.0 s  OSError: no loopback", lines[1])
    assert lines[2:4] == ["    no network", ""]
    assert lines[-1].startswith("collshim does not work on this machine with gloo: see above.")


def test_machine_without_shared_memory_works(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lacking = Trial("shared memory", _launch_refusing, may_lack=True)
    code, lines = _tell(monkeypatch, capsys, Trial("gloo", lambda: "24 calls"), lacking)
    assert code == 0
    assert "not here" in lines[1]
    assert "no memory to share" in lines[1]
    assert "works on this machine: gloo; without shared memory: processes use gloo, which is slower." in lines[-1]


def test_wrong_result_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def broadcast(self: Communicator, array: Any, root: int = 0) -> Any:
        return self.all_reduce(array)

    monkeypatch.setattr(Communicator, "broadcast", broadcast)
    with pytest.raises(RankError, match=r"broadcast on rank \d returned tensor\(.*should be tensor"):
        collshim.launch(self_test.exchange, 2, args=("cpu",))
