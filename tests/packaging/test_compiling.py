"""The compiled core is in the wheel if it can be compiled; if it cannot, a warning says so."""

from __future__ import annotations

import re
import shutil
import sys
import sysconfig
import zipfile
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

from compile_core import FILE, FOLDER, IS_FREE_THREADED, ROOT, CompileError, provide
from tests.packaging.conftest import Run

pytestmark = pytest.mark.processes

CORE = f"{FOLDER}/{FILE}"
BROKEN = {"CC": "false"}
WARNING = "WARNING: the core of collshim is not compiled: "
CAN_COMPILE = shutil.which("cc") is not None and Path(sysconfig.get_path("include"), "Python.h").exists()

needs_compiler = pytest.mark.skipif(not CAN_COMPILE, reason="cc or Python's headers are missing")


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list for the warnings; ``COLLSHIM_CORE`` and ``CC`` are not set."""
    monkeypatch.delenv("COLLSHIM_CORE", raising=False)
    monkeypatch.delenv("CC", raising=False)
    return []


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """Return the place of a core, with an older one in it."""
    (tmp_path / FILE).write_text("an older core")
    return tmp_path / FILE


def _tag(wheel: Path) -> str:
    return wheel.stem.split("-", 2)[2]


def _has_core(wheel: Path) -> bool:
    with zipfile.ZipFile(wheel) as archive:
        return CORE in archive.namelist()


def _build(python: Run, root: Path, out: Path, **variables: str) -> tuple[Path, str]:
    """Build a wheel; return it, and the output of the build."""
    done = python("-m", "build", "--no-isolation", "--wheel", f"--outdir={out}", str(root), variables=variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(out.glob("*.whl")), done.stdout + done.stderr


@needs_compiler
def test_wheel_holds_the_core_and_its_tag(wheel: Path) -> None:
    assert _has_core(wheel)
    assert IS_FREE_THREADED or _tag(wheel).startswith("cp310-abi3-linux_")


def test_core_uses_no_format_whose_meaning_depends_on_the_headers() -> None:
    sources = [path for path in Path(ROOT, FOLDER).iterdir() if path.suffix in (".c", ".h")]
    assert sources
    # Compiled with the headers of Python 3.13 or newer, "y#" raises SystemError in 3.10 to 3.12.
    found = {path.name: re.findall(r'"[^"\n]*[syz]#[^"\n]*"', path.read_text(encoding="utf-8")) for path in sources}
    assert {name: formats for name, formats in found.items() if formats} == {}


@needs_compiler
def test_core_of_the_wheel_can_be_loaded(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        loader = ExtensionFileLoader("_core", archive.extract(CORE, tmp_path))
    spec = spec_from_loader("_core", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    assert callable(module.Ring)


def test_skipped_core_gives_a_pure_wheel(python: Run, root: Path, tmp_path: Path) -> None:
    wheel, out = _build(python, root, tmp_path, COLLSHIM_CORE="skip")
    assert (_tag(wheel), _has_core(wheel), "WARNING" in out) == ("py3-none-any", False, False)


def test_broken_compiler_gives_a_pure_wheel_and_a_warning(python: Run, root: Path, tmp_path: Path) -> None:
    wheel, out = _build(python, root, tmp_path, **BROKEN)
    assert (_tag(wheel), _has_core(wheel)) == ("py3-none-any", False)
    assert WARNING in out
    assert "processes will use shared memory through pure Python, which is slower" in out


def test_required_core_fails_without_a_compiler(python: Run, root: Path, tmp_path: Path) -> None:
    variables = {**BROKEN, "COLLSHIM_CORE": "require"}
    done = python("-m", "build", "-n", "-w", f"-o={tmp_path}", str(root), variables=variables)
    assert done.returncode == 1
    assert "CompileError: COLLSHIM_CORE is 'require', but the core cannot be compiled" in done.stdout + done.stderr


@needs_compiler
def test_editable_installation_has_the_core_beside_its_source(python: Run, root: Path, tmp_path: Path) -> None:
    for name in ("pyproject.toml", "README.md", "LICENSE", "hatch_build.py", "compile_core.py", "collshim/__init__.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(root / name, tmp_path / name)
    shutil.copytree(root / FOLDER, tmp_path / FOLDER, ignore=shutil.ignore_patterns("_core*.so"))
    done = python("-c", "from hatchling.build import build_editable as build; build('dist')", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / CORE).exists()
    assert not any(map(_has_core, (tmp_path / "dist").glob("*.whl")))


@needs_compiler
def test_core_replaces_an_older_one(built: Path, warnings: list[str]) -> None:
    assert provide(built, warnings.append)
    assert built.read_bytes().startswith(b"\x7fELF")
    assert (list(built.parent.iterdir()), warnings) == ([built], [])


@pytest.mark.parametrize("setting", ["CC=false", "CC=no-such-compiler", "COLLSHIM_CORE=skip"])
def test_older_core_is_removed(built: Path, warnings: list[str], monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    monkeypatch.setenv(*setting.split("="))
    assert not provide(built, warnings.append)
    assert list(built.parent.iterdir()) == []


def test_other_system_is_named(tmp_path: Path, warnings: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not provide(tmp_path / FILE, warnings.append)
    assert warnings[0] == f"{WARNING}the system is darwin, should be linux"


def test_absent_compiler_is_named(tmp_path: Path, warnings: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    assert not provide(tmp_path / FILE, warnings.append)
    assert warnings[0] == f"{WARNING}no C compiler is found, tried no-such-compiler"


def test_absent_headers_are_named(tmp_path: Path, warnings: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", sys.executable)
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    assert not provide(tmp_path / FILE, warnings.append)
    assert warnings[0].startswith(f"{WARNING}Python's headers are missing, {tmp_path}/Python.h")


def test_unknown_choice_is_refused(tmp_path: Path, warnings: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLSHIM_CORE", "maybe")
    with pytest.raises(CompileError, match=r"COLLSHIM_CORE is 'maybe', should be one of \('require', 'skip'\)"):
        provide(tmp_path / FILE, warnings.append)
