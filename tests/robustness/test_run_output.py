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
BREAKS = """
import collshim
comm = collshim.current().communicator
comm._plans = None
comm.barrier()
"""
IGNORES = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])
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


def test_unexpected_error_says_how_to_see_the_frames(tmp_path: Path) -> None:
    seen = _run(tmp_path, BREAKS)
    assert "[rank 0] (raised inside collshim; COLLSHIM_FULL_TRACE=1 shows where)" in seen.errors.splitlines()
    assert _frames(seen.errors) == ["script.py"]


def test_error_of_collshim_needs_no_such_line(tmp_path: Path) -> None:
    assert "raised inside" not in _run(tmp_path, MISTAKE).errors


@pytest.mark.parametrize("source", ["import missing_module", "import torch, missing_module", "import broken"])
def test_failed_import_of_the_program_needs_no_such_line(tmp_path: Path, source: str) -> None:
    (tmp_path / "broken.py").write_text("def (", encoding="utf-8")
    seen = _run(tmp_path, source, "--as", "torch")
    assert seen.code == 1, seen
    assert "Error: " in seen.errors
    assert "raised inside" not in seen.errors


def test_ignored_interrupt_stays_ignored(tmp_path: Path) -> None:
    """A shell without job control starts what it puts into the background so."""
    (tmp_path / "script.py").write_text("print('here')", encoding="utf-8")
    words = [sys.executable, "-c", IGNORES, sys.executable, "-m", "collshim", "run", "script.py"]
    with subprocess.Popen(words, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, text=True) as process:
        _await_torch(process.pid)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=200)
    assert (process.returncode, out) == (0, "here\n")


def test_prefixes_are_coloured_if_asked_for(tmp_path: Path) -> None:
    seen = _run(tmp_path, "print('here')", FORCE_COLOR="1")
    assert sorted(seen.out.splitlines()) == ["\x1b[33m[rank 1] \x1b[0mhere", "\x1b[36m[rank 0] \x1b[0mhere"]


def test_pipe_gets_no_colours(tmp_path: Path) -> None:
    assert sorted(_run(tmp_path, "print('here')").out.splitlines()) == ["[rank 0] here", "[rank 1] here"]


def _await_torch(pid: int, *, ranks: int = 0) -> None:
    """Wait until a process, or as many of its children, have begun to import torch."""
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        children = Path("/proc", str(pid), "task", str(pid), "children").read_text().split()
        having = [each for each in children if ranks and _has_torch(each)]
        if len(having) >= ranks and (ranks or _has_torch(pid)):
            return
        time.sleep(0.01)
    raise AssertionError("torch was not imported")


def _has_torch(pid: int | str) -> bool:
    try:
        return "libtorch" in Path("/proc", str(pid), "maps").read_text()
    except OSError:  # it has ended
        return False


@pytest.mark.parametrize("ranks", [0, 2], ids=["while torch is imported", "while the ranks start"])
def test_interrupt_at_the_start_prints_nothing(ranks: int, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SLEEPS, encoding="utf-8")
    words = [sys.executable, "-m", "collshim", "run", "-n", "2", "script.py"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        words, cwd=tmp_path, env=environment(), stdout=pipe, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        _await_torch(process.pid, ranks=ranks)
        os.killpg(process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=200)
    assert (process.returncode, out) == (130 if ranks else -signal.SIGINT, "")


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
