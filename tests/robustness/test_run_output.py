"""What ``collshim run`` prints: tracebacks without collshim's frames, coloured prefixes, help; Ctrl-C at its start."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from collshim.__main__ import main
from tests.robustness.scripts import Ended, environment, run_command

pytestmark = pytest.mark.processes

MISTAKE = """
import torch
import collshim.torch.distributed as dist

dist.init_process_group("gloo")

def step(x):
    dist.all_reduce(x)

try:
    step(torch.ones(2 + dist.get_rank()))
except RuntimeError as error:
    raise ValueError("no step") from error
"""
SLEEPS = """
import collshim.torch.distributed as dist, time
dist.init_process_group("gloo")
time.sleep(1000)
"""


def _run(folder: Path, source: str, *options: str, **variables: str) -> Ended:
    (folder / "script.py").write_text(source, encoding="utf-8")
    return run_command(folder, "run", "-n", "2", *options, "script.py", **variables)


def _frames(text: str) -> list[str]:
    return [Path(path).name for path in re.findall(r'\[rank 0\]   File "([^"]+)"', text)]


def test_frames_of_collshim_are_hidden(tmp_path: Path) -> None:
    seen = _run(tmp_path, MISTAKE)
    assert seen.code == 1, seen
    assert _frames(seen.errors) == ["script.py"] * 3, "in the cause too"
    assert "[rank 0] ValueError: no step" in seen.errors


def test_full_trace_shows_them(tmp_path: Path) -> None:
    frames = _frames(_run(tmp_path, MISTAKE, "--full-trace").errors)
    assert frames[:2] == ["script.py"] * 2
    assert "reductions.py" in frames


def test_prefixes_are_coloured_if_asked_for(tmp_path: Path) -> None:
    seen = _run(tmp_path, "print('here')", FORCE_COLOR="1")
    assert sorted(seen.out.splitlines()) == ["\x1b[33m[rank 1] \x1b[0mhere", "\x1b[36m[rank 0] \x1b[0mhere"]


def test_pipe_gets_no_colours(tmp_path: Path) -> None:
    assert sorted(_run(tmp_path, "print('here')").out.splitlines()) == ["[rank 0] here", "[rank 1] here"]


def _children_run(pid: int, word: str) -> bool:
    """Check whether a process has a child whose command line has that word."""
    for path in Path("/proc", str(pid), "task", str(pid)).glob("children"):
        for child in path.read_text().split():
            if word in Path("/proc", child, "cmdline").read_bytes().decode():
                return True
    return False


@pytest.mark.parametrize("is_up", [False, True], ids=["while torch is imported", "while the ranks start"])
def test_interrupt_at_the_start_prints_nothing(is_up: bool, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SLEEPS, encoding="utf-8")
    words = [sys.executable, "-m", "collshim", "run", "-n", "2", "script.py"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        words, cwd=tmp_path, env=environment(), stdout=pipe, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        limit = time.monotonic() + 60
        while is_up and not _children_run(process.pid, "start.py") and time.monotonic() < limit:
            time.sleep(0.01)
        time.sleep(0.5)  # the interpreter is up, and importing torch takes longer
        os.killpg(process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (130 if is_up else -signal.SIGINT, "")


def test_help_shows_torchruns_options_only_if_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for option in ("--help", "--help-torchrun"):
        with pytest.raises(SystemExit) as ended:
            main(["run", option])
        assert ended.value.code == 0
        texts.append(capsys.readouterr().out)
    assert ["--rdzv-backend" in text for text in texts] == [False, True]
    assert all("--full-trace" in text and "--nproc-per-node N" in text for text in texts)
    assert "_node" not in texts[0], "the spelling with underscores works too, and is not shown"


def test_spelling_with_underscores_is_checked_too(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "--nproc_per_node", "0", "script.py"])
    assert "should be a number of at least 1" in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion_knows_commands_and_options(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("shtab")
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(word in script for word in ("invariance", "--no-prefix", "--against"))
