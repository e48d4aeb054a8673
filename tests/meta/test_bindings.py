"""Bindings: one name each, only the standard library and NumPy, so that they run on a real framework too."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from collshim import conformance
from collshim.conformance import missing
from collshim.conformance.bindings import bindings, find
from collshim.conformance.bindings.rank_context import MissingFunctionError, RankContext, resolve
from collshim.conformance.bindings.spelling import Spelling
from collshim.conformance.cases import OBJECTS, ONE_PART, PART_PER_RANK
from collshim.frameworks import FRAMEWORKS

SUITE = Path(conformance.__file__).resolve().parent
SPOKEN = (
    "bindings",
    "spellings",
    "cases",
    "values",
    "extremes",
    "dtypes",
    "reference",
    "gradients",
)  # these run on the real framework too
FOLDERS = [path for name in SPOKEN[:2] for path in sorted((SUITE / name).rglob("*.py"))]
STAND_ALONE = [*FOLDERS, *(SUITE / f"{name}.py" for name in SPOKEN[2:])]
ALLOWED = {"numpy", "collshim"} | set(sys.stdlib_module_names)


def test_every_binding_is_found_by_its_name() -> None:
    assert len({binding.name for binding in bindings()}) == len(bindings())
    assert all(find(binding.name) is binding for binding in bindings())
    with pytest.raises(LookupError, match="no binding 'nope'"):
        find("nope")


KINDS = {"arrays": {*ONE_PART, *PART_PER_RANK, "barrier"}, "objects": set(OBJECTS)}


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_frameworks_spell_every_collective_they_have(framework: str) -> None:
    declared = [KINDS.get(name, {name}) for name in FRAMEWORKS[framework].collectives]
    assert {b.collective for b in bindings() if b.framework.name == framework} == set().union(*declared)


@pytest.mark.parametrize("path", STAND_ALONE, ids=lambda path: str(path.relative_to(SUITE)))
def test_only_standard_library_and_numpy_are_imported(path: Path) -> None:
    tree = ast.parse(path.read_text())
    plain = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    parts = [f"{node.module}.{alias.name}" for node in froms for alias in node.names]
    assert {name.partition(".")[0] for name in plain + parts} <= ALLOWED
    modules = {name for name in plain + parts if name.startswith("collshim")}
    spoken = ("collshim.frameworks", *(f"collshim.conformance.{name}" for name in SPOKEN))
    assert all(name.startswith(spoken) for name in modules)


def test_bindings_load_without_engine_and_torch() -> None:
    program = """
import sys, types
bare = types.ModuleType("collshim"); bare.__path__ = [sys.argv[1]]
sys.modules["collshim"] = bare
sys.modules["torch"] = None
from collshim.conformance import cases, reference
from collshim.conformance.bindings import bindings, find
binding = find("oneflow.comm.all_gather")
print(len(bindings()), binding.expected(cases.Case("all_gather", kind="numpy"), 1, reference).returned)
"""
    root = str(Path(conformance.__file__).parent.parent)
    found = subprocess.run(
        [sys.executable, "-c", program, root], capture_output=True, text=True, timeout=200, check=False
    )
    assert found.stdout == f"{len(bindings())} None\n", found.stderr


def test_unresolved_path_is_missing_but_failing_import_raises(tmp_path: Path) -> None:
    with pytest.raises(MissingFunctionError):
        resolve("os.path.nothing_of_that_name")
    with pytest.raises(MissingFunctionError):
        resolve("no_such_package_at_all.function")
    (tmp_path / "breaks.py").write_text("import no_such_package_at_all\n")
    sys.path.insert(0, str(tmp_path))
    try:
        with pytest.raises(ModuleNotFoundError, match="no_such_package_at_all"):
            resolve("breaks.function")
    finally:
        sys.path.remove(str(tmp_path))


def test_package_attribute_hides_its_submodule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For example, ``tf.distribute`` is not TensorFlow's folder of that name."""
    (tmp_path / "twofold").mkdir()
    (tmp_path / "twofold" / "__init__.py").write_text("class inner:\n    there = 1\n")
    (tmp_path / "twofold" / "inner.py").write_text("elsewhere = 2\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert resolve("twofold.inner.there") == 1
    with pytest.raises(MissingFunctionError):
        resolve("twofold.inner.elsewhere")


def test_missing_function_is_skipped() -> None:
    absent = replace(bindings()[0], path="torch.distributed.no_such_function")
    with pytest.raises(pytest.skip.Exception, match=r"missing: collshim\.torch\.distributed\.no_such_function"):
        missing.require(absent)


def test_one_binding_serves_any_prefix() -> None:
    assert RankContext(0, 1, prefix="").function("os.path.join") is resolve("posixpath.join")
    assert RankContext(0, 1, prefix="os.").function("path.join") is resolve("posixpath.join")


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_arguments_are_parameters_of_the_function(framework: str) -> None:
    spelled = [one for one in bindings() if isinstance(one, Spelling) and one.framework.name == framework]
    unknown = {one.name: {*one.takes, *one.options} - _parameters(one.path) for one in spelled}
    assert {name: parameters for name, parameters in unknown.items() if parameters} == {}
    assert spelled


def _parameters(path: str) -> set[str]:
    """Return the parameters of a function; of a primitive those of the class and of its instance's call."""
    function = resolve(f"collshim.{path}")
    called = (function, function.__call__) if isinstance(function, type) else (function,)
    return {name for one in called for name in inspect.signature(one).parameters}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"takes": {"tensor": "aray"}}, r"are \['aray'\], should be of"),
        ({"result": "out"}, "result is 'out', should be"),
    ],
)
def test_invalid_spelling_is_refused(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        replace(find("torch.distributed.all_gather"), **changes)
