"""What collshim says of itself and of the system that it is imported on."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch

import collshim
from collshim.__main__ import main


def test_a_system_without_fork_is_refused_in_one_sentence() -> None:
    without = "import os, torch; del os.register_at_fork; import collshim"
    path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", without], env=os.environ | path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("ImportError: collshim runs on Linux, and macOS has not been tested")


def test_info_tells_versions_and_what_the_launcher_says_but_no_secret(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "h", "MASTER_PORT": "7", "COLLSHIM_SECRET": "the secret"}
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    assert main(["info"]) == 0
    out = capsys.readouterr().out
    assert f"collshim    {collshim.__version__}, " in out
    assert f"torch       {torch.__version__}, backends gloo" in out
    assert "launcher    rank 1 of 2, rank 0 at h:7" in out
    assert "COLLSHIM_SECRET=(hidden)" in out
    assert "the secret" not in out
