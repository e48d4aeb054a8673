"""The allowed imports between modules, checked in the code.

A row of the table is a module of the engine, or a folder beside it. It reaches itself and the rows below it, nothing
else. A folder that the table does not name is transparent: its imports count as those of its importers. No modules
import each other in a cycle. Every import counts, also in a function or only for annotations.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from itertools import permutations
from pathlib import Path

import pytest

from collshim.launching.kinds import RANK_KINDS
from tests.packaging.imports import Modules, find_cycles, find_modules, find_reached, imports, neighbours_of
from tests.packaging.layers import FRAMEWORKS, HEIGHT

# Modules that may name torch's process groups, and those that must not reach them all the same.
PROCESS_GROUPS = ("torch.distributed", "torch._C._distributed_c10d")
# collshim.launching.run starts torch's elastic agent, which is in torch.distributed too, with the rendezvous.
_STORE = "mindspore.communication._store"
_MAY = (
    *("transports.processes.*", "transports.rendezvous.*", "world", "torch.*", "torch_release", _STORE),
    *(f"launching.{name}" for name in ("rendezvous", "info", "run", "run_options", "worker")),
    *("invariance.parameters", "invariance.program"),  # know DTensors, and give the program its default group
)
MAY_NAME_PROCESS_GROUPS = tuple(f"collshim.{name}" for name in _MAY)
NEVER_REACHES_PROCESS_GROUPS = "collshim.transports.threads.*"

# Modules that run on the real framework as well, in an environment without collshim, and their allowed imports.
SPOKEN = (
    *("record", "recorder", "bindings", "spellings", "foreign"),
    *("cases", "values", "extremes", "dtypes", "reference", "gradients"),
)
STAND_ALONE = ("collshim.frameworks", *(f"collshim.conformance.{name}{more}" for name in SPOKEN for more in ("", ".*")))
THERE = {*sys.stdlib_module_names, "numpy", *FRAMEWORKS}

# Folders that the package has as links, or as parts of the wheel: each is one row of the table.
BESIDE_THE_ENGINE = {*FRAMEWORKS, "conformance", "demo"}

# Folders whose modules must be free of cycles, besides the engine's.
PARTS = (*(f"adapters/{framework}" for framework in FRAMEWORKS), "conformance", "demo", "tests")


def row(name: str) -> str:
    """Return a module's row: an engine module's own name, or the name of a folder beside it; tests have none."""
    if name == "collshim":
        return "__init__"
    path = name.removeprefix("collshim.")
    folder = path.split(".")[0]
    return folder if folder in BESIDE_THE_ENGINE else path


def unnamed_modules(modules: Modules) -> list[str]:
    """Return modules of the package that the table does not name."""
    return sorted(name for name in modules if not name.startswith("tests") and row(name) not in HEIGHT)


def trails(name: str, modules: Modules) -> Iterator[list[str]]:
    """Yield the paths from a module to the first that the table names, through those that it does not."""
    ends, queue = {name}, [[name]]
    while queue:
        trail = queue.pop()
        for target in neighbours_of(trail[-1], modules) - ends:
            ends.add(target)
            if row(target) in HEIGHT:
                yield [*trail, target]
            else:
                queue.append([*trail, target])


def upward_trails(modules: Modules) -> list[str]:
    return sorted(
        " -> ".join(trail)
        for name in modules
        if row(name) in HEIGHT
        for trail in trails(name, modules)
        if row(trail[-1]) != row(name) and HEIGHT[row(trail[-1])] >= HEIGHT[row(name)]
    )


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


def names_process_groups(name: str, modules: Modules) -> bool:
    return any(
        f"{target}.".startswith(f"{owner}.") for target in imports(name, modules[name]) for owner in PROCESS_GROUPS
    )


def misplaced_process_groups(modules: Modules) -> list[str]:
    """Return modules of the engine and the adapters that name process groups against the table."""
    names = [name for name in modules if name.startswith("collshim") and row(name) != "conformance"]
    return [
        name for name in names if names_process_groups(name, modules) and not _matches(name, MAY_NAME_PROCESS_GROUPS)
    ]


def modules_reached(pattern: str, modules: Modules) -> set[str]:
    """Return the modules of a pattern, and all that they reach."""
    neighbours = {name: neighbours_of(name, modules) for name in modules}
    names = {name for name in modules if fnmatch(name, pattern)}
    return names.union(*(find_reached(name, neighbours) for name in names))


def process_groups_reached(pattern: str, modules: Modules) -> list[str]:
    """Return those of them that name process groups."""
    return [name for name in sorted(modules_reached(pattern, modules)) if names_process_groups(name, modules)]


def private_imports(modules: Modules) -> list[str]:
    """Return private names of an adapter that the suite imports."""
    return [
        f"{name}: {target}"
        for name in modules
        if row(name) == "conformance"
        for target in imports(name, modules[name])
        if target.startswith(tuple(f"collshim.{framework}." for framework in FRAMEWORKS)) and "._" in target
    ]


def foreign_imports(modules: Modules) -> list[str]:
    """Return the imports of the stand-alone part of the suite that are missing beside the real framework."""
    return [
        f"{name}: {target}"
        for name in modules
        if _matches(name, STAND_ALONE)
        for target in imports(name, modules[name])
        if target.split(".")[0] not in THERE
        and not f"{target}.".startswith(tuple(f"{one.removesuffix('.*')}." for one in STAND_ALONE))
    ]


@pytest.fixture(scope="module")
def modules(root: Path) -> Modules:
    return find_modules(root)


@pytest.fixture(scope="module")
def circles_of_the_tree(modules: Modules, root: Path) -> list[list[str]]:
    return find_cycles(modules, root)


def test_table_names_exactly_the_modules(modules: Modules) -> None:
    assert unnamed_modules(modules) == []
    assert HEIGHT.keys() - {row(name) for name in modules} == set()


@pytest.mark.parametrize("pattern", [*MAY_NAME_PROCESS_GROUPS, NEVER_REACHES_PROCESS_GROUPS])
def test_pattern_matches_modules(modules: Modules, pattern: str) -> None:
    assert [name for name in modules if fnmatch(name, pattern)] != []


def test_every_process_group_pattern_is_used(modules: Modules) -> None:
    names = [name for name in modules if names_process_groups(name, modules)]
    assert [pattern for pattern in MAY_NAME_PROCESS_GROUPS if not any(fnmatch(name, pattern) for name in names)] == []


@pytest.mark.parametrize("name", SPOKEN)
def test_standalone_module_exists(modules: Modules, name: str) -> None:
    assert f"collshim.conformance.{name}" in modules


def test_no_module_imports_a_higher_layer(modules: Modules) -> None:
    assert upward_trails(modules) == []


def _circles_in(part: str, tree: list[list[str]]) -> str:
    """Return a line for each cycle that has a file of this part of the tree."""
    return "\n".join(" <-> ".join(files) for files in tree if any(file.startswith(f"{part}/") for file in files))


def test_engine_has_no_import_cycle(circles_of_the_tree: list[list[str]]) -> None:
    assert not (lines := _circles_in("collshim", circles_of_the_tree)), lines


@pytest.mark.parametrize("part", PARTS)
def test_modules_beside_the_engine_have_no_cycle(circles_of_the_tree: list[list[str]], part: str) -> None:
    assert not (lines := _circles_in(part, circles_of_the_tree)), lines


def test_every_adapter_is_in_the_table(frameworks: set[str]) -> None:
    assert frameworks == set(FRAMEWORKS)


def test_process_groups_are_named_only_where_allowed(modules: Modules) -> None:
    assert misplaced_process_groups(modules) == []


def test_thread_ranks_need_no_process_groups(modules: Modules) -> None:
    assert process_groups_reached(NEVER_REACHES_PROCESS_GROUPS, modules) == []


@pytest.mark.parametrize(("transport", "other"), [*permutations(RANK_KINDS)])
def test_transport_reaches_no_other_transport(modules: Modules, transport: str, other: str) -> None:
    closure = modules_reached(f"collshim.transports.{transport}.*", modules)
    assert [name for name in sorted(closure) if name.startswith(f"collshim.transports.{other}")] == []


def test_suite_imports_no_private_adapter_names(modules: Modules) -> None:
    assert private_imports(modules) == []


def test_modules_for_the_real_framework_stand_alone(modules: Modules) -> None:
    assert foreign_imports(modules) == []


def _built(root: Path, files: dict[str, str]) -> Modules:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return find_modules(root)


WORLD = {
    "collshim/transports/processes/messages.py": "",
    "collshim/calls/plan.py": "",
    "collshim/world.py": "",
    "collshim/__init__.py": "",
    "adapters/torch/__init__.py": "",
}
ANNOTATIONS_OF_A_PLAN = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from collshim.calls.plan import Plan"


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("collshim/transports/threads/group.py", "def later():\n    from collshim.world import current"),
        ("collshim/transports/processes/request.py", "from collshim.transports.processes.messages import Messages"),
        ("collshim/transports/processes/request.py", "from collshim.transports.processes import messages"),
        ("collshim/calls/call.py", ANNOTATIONS_OF_A_PLAN),
        ("collshim/layout.py", "from collshim import world"),
        ("collshim/communicator.py", "from collshim import Communicator"),
        ("collshim/world.py", "import collshim.torch"),
        ("adapters/oneflow/comm/__init__.py", "from collshim.torch import distributed"),
        ("adapters/oneflow/comm/__init__.py", "from ...torch import distributed"),
        ("adapters/torch/env.py", "import collshim.conformance.pool"),
    ],
)
def test_upward_import_is_detected(tmp_path: Path, file: str, text: str) -> None:
    files = {**WORLD, "conformance/pool.py": "", file: text}
    assert len(upward_trails(_built(tmp_path, files))) == 1


def test_upward_import_through_an_unnamed_module_is_detected(tmp_path: Path) -> None:
    files = {**WORLD, "collshim/work.py": "import collshim.call", "collshim/call.py": "import collshim.world"}
    assert upward_trails(_built(tmp_path, files)) == ["collshim.work -> collshim.call -> collshim.world"]


@pytest.mark.parametrize("file", ["collshim/call.py", "collshim/calls/call_site.py", "collshim/ring/__init__.py"])
def test_unnamed_module_is_detected(tmp_path: Path, file: str) -> None:
    name = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    assert unnamed_modules(_built(tmp_path, {**WORLD, file: ""})) == [name]


def test_process_group_reached_by_a_thread_is_detected(tmp_path: Path) -> None:
    files = {
        "collshim/transports/threads/group.py": "import collshim.work",
        "collshim/work.py": "import torch.distributed",
    }
    modules = _built(tmp_path, files)
    assert process_groups_reached(NEVER_REACHES_PROCESS_GROUPS, modules) == ["collshim.work"]


B_IMPORTS_A = {"collshim/b.py": "from collshim import a"}
ANNOTATIONS_OF_B = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from collshim.b import B"
PACKAGE_AND_MODULE = {
    "adapters/torch/distributed/__init__.py": "from collshim.torch.distributed import gathers",
    "adapters/torch/distributed/gathers.py": "import collshim.torch.distributed",
}


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({"collshim/a.py": "import collshim.b", **B_IMPORTS_A}, id="two"),
        pytest.param(
            {"collshim/a.py": "import collshim.c", "collshim/c.py": "import collshim.b", **B_IMPORTS_A}, id="three"
        ),
        pytest.param({"collshim/a.py": ANNOTATIONS_OF_B, **B_IMPORTS_A}, id="for annotations"),
        pytest.param({"collshim/a.py": "def late():\n    from collshim.b import B", **B_IMPORTS_A}, id="function"),
        pytest.param(PACKAGE_AND_MODULE, id="package and module"),
    ],
)
def test_cycle_is_detected(tmp_path: Path, files: dict[str, str]) -> None:
    assert find_cycles(_built(tmp_path, {**WORLD, **files}), tmp_path) == [sorted(files)]


def test_separate_cycles_are_listed_separately(tmp_path: Path) -> None:
    files = {"collshim/a.py": "import collshim.b", **B_IMPORTS_A, **PACKAGE_AND_MODULE}
    assert find_cycles(_built(tmp_path, files), tmp_path) == [
        sorted(PACKAGE_AND_MODULE),
        ["collshim/a.py", "collshim/b.py"],
    ]


def test_two_paths_to_one_module_are_no_cycle(tmp_path: Path) -> None:
    files = {"collshim/a.py": "import collshim.b, collshim.c", "collshim/b.py": "import collshim.c"}
    assert find_cycles(_built(tmp_path, {**files, "collshim/c.py": ""}), tmp_path) == []


@pytest.mark.parametrize(
    "text",
    [
        "import torch.distributed as dist",
        "from torch import distributed",
        "import torch\ntorch.distributed.Store",
    ],
)
def test_process_group_named_elsewhere_is_detected(tmp_path: Path, text: str) -> None:
    assert misplaced_process_groups(_built(tmp_path, {"collshim/check.py": text})) == ["collshim.check"]


def test_private_import_of_an_adapter_is_detected(tmp_path: Path) -> None:
    text = "from collshim.torch.distributed import _on_root, broadcast"
    assert private_imports(_built(tmp_path, {"conformance/test_a.py": text})) == [
        "collshim.conformance.test_a: collshim.torch.distributed._on_root"
    ]


def test_foreign_import_of_a_binding_is_detected(tmp_path: Path) -> None:
    text = "import json, numpy, oneflow, hypothesis"
    assert foreign_imports(_built(tmp_path, {"conformance/bindings/oneflow.py": text})) == [
        "collshim.conformance.bindings.oneflow: hypothesis"
    ]
