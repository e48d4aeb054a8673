"""collshim's description of itself and of the system that it is imported on."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from shutil import copy

import pytest
import torch

import collshim
from collshim.__main__ import _COMMANDS, main
from collshim.transports import shared_memory
from collshim.transports.shared_memory import core

ROOT = Path(__file__).resolve().parents[2]


def run_program(program: str, *first: Path) -> subprocess.CompletedProcess[str]:
    """Run a program in a separate interpreter, which searches the folders ``first`` before others."""
    path = os.pathsep.join([*map(str, first), *sys.path])
    return subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        cwd=ROOT / "docs",
        timeout=200,
        check=False,
    )


def test_system_without_fork_is_refused() -> None:
    done = run_program("import os, tempfile; del os.register_at_fork; import collshim")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("ImportError: collshim runs on Linux; it is untested on macOS")


def test_checkout_without_symbolic_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "collshim").mkdir()
    for name in ("__init__.py", "compiling.py", "importing.py"):
        copy(ROOT / "collshim" / name, tmp_path / "collshim")
    (tmp_path / "collshim" / "torch").write_text("../adapters/torch")
    done = run_program("import collshim", tmp_path)
    assert done.returncode == 1
    assert f"{tmp_path / 'collshim' / 'torch'} is not a folder" in done.stderr.splitlines()[-1]
    assert "git config core.symlinks true" in done.stderr.splitlines()[-1]


def test_command_list_and_version_need_no_torch() -> None:
    program = (
        "import sys; sys.modules['torch'] = None; from collshim.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )
    assert "conformance" in run_program(f"import sys; sys.argv[1:] = ['--help']; {program}").stdout
    assert (
        run_program(f"import sys; sys.argv[1:] = ['--version']; {program}").stdout
        == f"collshim {collshim.__version__}\n"
    )
    assert "import of torch halted" in run_program(f"import sys; sys.argv[1:] = ['info']; {program}").stderr


def test_documented_submodules_need_no_import() -> None:
    program = "import collshim; print(*(getattr(collshim, name).__name__ for name in ('world', 'arrays', 'errors')))"
    assert run_program(program).stdout == "collshim.world collshim.arrays collshim.errors\n"


def test_every_public_name_is_found_and_listed() -> None:
    assert all(getattr(collshim, name) is not None for name in collshim.__all__)
    assert set(collshim.__all__) <= set(dir(collshim))
    with pytest.raises(AttributeError, match="module 'collshim' has no attribute 'all_reduce'"):
        collshim.all_reduce  # noqa: B018


def test_info_shows_versions_and_launcher_but_no_secret(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "h", "MASTER_PORT": "7", "COLLSHIM_SECRET": "the secret"}
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    assert main(["info"]) == 0
    out = capsys.readouterr().out
    assert f"collshim    {collshim.__version__}, " in out
    assert f"torch       {torch.__version__}, backends gloo" in out
    assert f"core        {core.description()}\n" in out
    assert "launcher    rank 1 of 2, rank 0 at h:7" in out
    assert "COLLSHIM_SECRET=(hidden)" in out
    assert "the secret" not in out


def test_info_shows_a_refused_core(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delitem(sys.modules, core.__name__)
    monkeypatch.delattr(shared_memory, "core")
    monkeypatch.setenv("COLLSHIM_CORE", "gloo")
    assert main(["info"]) == 0
    assert "core        none: COLLSHIM_CORE is 'gloo', should be one of " in capsys.readouterr().out


def test_other_broken_pipe_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(parser: argparse.ArgumentParser) -> None:
        def run(chosen: argparse.Namespace) -> int:
            raise BrokenPipeError("of a rank")

        parser.set_defaults(run=run)

    monkeypatch.setitem(_COMMANDS, "info", _COMMANDS["info"]._replace(add_options=broken))
    with pytest.raises(BrokenPipeError, match="of a rank"):
        main(["info"])


def test_command_without_a_reader_ends_quietly() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as out:
        command = [sys.executable, "-m", "collshim", "info"]
        done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, timeout=200, check=False)
    assert (done.returncode, done.stderr) == (141, "")
