"""The core of the meeting in shared memory is the compiled one if it is there, or else the one in Python."""

from __future__ import annotations

import platform
import sys
from types import ModuleType, SimpleNamespace

import pytest

from collshim.errors import ArgumentValueError
from collshim.transports.shared_memory import core, ring

COMPILED = "collshim.transports.shared_memory._core"


@pytest.fixture(autouse=True)
def _unset_on_x86_64(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLLSHIM_CORE", raising=False)
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Put an empty module in the compiled core's place."""
    module = ModuleType(COMPILED)
    monkeypatch.setitem(sys.modules, COMPILED, module)
    return module


@pytest.fixture
def _absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, COMPILED, None)


@pytest.mark.parametrize("asked", ["", "compiled", "require", "skip"])
def test_compiled_core_is_used_if_present(compiled: ModuleType, monkeypatch: pytest.MonkeyPatch, asked: str) -> None:
    monkeypatch.setenv("COLLSHIM_CORE", asked)
    assert core.find() == (compiled, "compiled")


@pytest.mark.usefixtures("_absent")
def test_python_is_used_if_extension_was_not_built() -> None:
    assert core.find() == (ring, "pure Python (the extension was not built)")


@pytest.mark.usefixtures("compiled")
def test_python_is_used_if_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLSHIM_CORE", "python")
    assert core.find() == (ring, "pure Python (COLLSHIM_CORE is 'python')")


def test_extension_that_cannot_be_loaded_is_described(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str) -> ModuleType:
        if name == COMPILED:
            raise ImportError("undefined symbol: PyOther")
        return ring

    monkeypatch.setattr(core, "import_module", load)
    assert core.find() == (ring, "pure Python (the extension cannot be loaded: undefined symbol: PyOther)")


def test_extension_for_pythons_with_a_gil_is_not_loaded_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "_IS_FREE_THREADED", True)
    found = SimpleNamespace(origin="/folder/_core.abi3.so")
    monkeypatch.setattr(core, "PathFinder", SimpleNamespace(find_spec=lambda name, path: found))
    reason = "it was compiled for Pythons with a GIL, and this one is free-threaded"
    assert core.find() == (ring, f"pure Python (the extension cannot be loaded: {reason})")


@pytest.mark.usefixtures("_absent")
def test_absent_core_is_refused_if_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLSHIM_CORE", "compiled")
    with pytest.raises(ImportError, match="COLLSHIM_CORE is 'compiled', but the extension was not built"):
        core.find()


def test_unknown_choice_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLSHIM_CORE", "c")
    with pytest.raises(ArgumentValueError, match=r"COLLSHIM_CORE is 'c', should be one of \('compiled', 'python'\)"):
        core.find()


@pytest.mark.usefixtures("_absent")
def test_python_is_not_used_if_stores_may_be_reordered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    module, description = core.find()
    assert module is None
    assert description.startswith("none (the extension was not built; pure Python needs 64-bit Linux on x86-64")


@pytest.mark.usefixtures("compiled")
def test_compiled_core_needs_no_x86_64(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert core.find()[1] == "compiled"
