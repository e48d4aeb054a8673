"""docs/adding-a-framework.md: the function that it shows, and the framework that it adds from outside."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from collshim.oneflow import comm

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "adding-a-framework.md").read_text(encoding="utf-8")
BLOCKS = [
    (PAGE[: block.start()].rstrip().rpartition("\n\n")[2], block[1])
    for block in re.finditer(r"^```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
]
FILES = {text[1:].partition("`")[0]: code for text, code in BLOCKS if text.startswith("`")}
COMMAND = re.findall(r"^    \$ collshim (.+)$", PAGE, re.MULTILINE)


def test_function_on_the_page_is_the_adapters() -> None:
    assert BLOCKS[0][1] == inspect.getsource(comm.all_gather)


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """Write the page's distribution as it would be installed."""
    for name, code in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code, encoding="utf-8")
    for folder in ("toy_port", "toy_port/toy"):
        (tmp_path / folder / "__init__.py").touch()
    entry = re.search(r'\[project.entry-points."(.+)"\]\n(.+)', FILES["pyproject.toml"])
    assert entry is not None
    line = entry[2].replace('"', "")
    told = tmp_path / "toy_port-0.1.dist-info"
    told.mkdir()
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-port\nVersion: 0.1\n", encoding="utf-8")
    (told / "entry_points.txt").write_text(f"[{entry[1]}]\n{line}\n", encoding="utf-8")
    return tmp_path


def run(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Run the page's command."""
    return subprocess.run(
        [sys.executable, "-m", "collshim", *COMMAND[0].split(), *more],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def test_framework_is_added_by_the_files_of_the_page(toy: Path) -> None:
    done = run(toy)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"all_gather +✓ ✓ +\d+\n", done.stdout)
    assert " 0 failed, 0 functions missing" in done.stdout


def test_mistake_is_shown_with_function_and_case(toy: Path) -> None:
    path = toy / "toy_port" / "toy" / "comm.py"
    path.write_text(path.read_text(encoding="utf-8").replace(".then(list)", ".then(lambda x: [*x][::-1])"))
    done = run(toy, "--collective", "all_gather", "--transport", "threads")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "failed: toy.comm.everyone: Case('all_gather', seed=1)\n  rank 0: returned[0]" in done.stdout


def test_entry_registers_an_option(toy: Path) -> None:
    path, (option,) = toy / "toy_port" / "entry.py", re.findall(r"`(options=\{.+?\})`", PAGE)
    path.write_text(path.read_text(encoding="utf-8").replace("\n)\n", f"\n    {option},\n)\n"), encoding="utf-8")
    program = (
        "import collshim, os; from collshim.settings import of_adapter as chosen; print(chosen('toy_order'));"
        "os.environ['COLLSHIM_TOY_ORDER'] = 'reversed'; print(chosen('toy_order'));"
        "block = collshim.options(toy_order='ranks'); block.__enter__(); print(chosen('toy_order'))"
    )
    paths = {"PYTHONPATH": f"{toy}{os.pathsep}{ROOT}"}
    found = subprocess.check_output([sys.executable, "-c", program], env=os.environ | paths, text=True, timeout=200)
    assert found.split() == ["ranks", "reversed", "ranks"]


def test_framework_can_be_tested_alone(toy: Path) -> None:
    done = run(toy, "--framework", "toy", "torch")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--framework is toy torch, should be toy alone" in done.stderr


def test_broken_entry_is_reported_and_disturbs_nobody_else(toy: Path) -> None:
    (toy / "toy_port" / "entry.py").write_text("import nothing_of_that_name\n", encoding="utf-8")
    done = run(toy)
    assert (done.returncode, done.stdout) == (2, "")
    assert "toy: its entry toy_port.entry:ENTRY cannot be loaded: ModuleNotFoundError" in done.stderr
    other = run(toy, "--framework", "oneflow", "--collective", "barrier", "--transport", "threads")
    assert other.returncode == 0, other.stderr
