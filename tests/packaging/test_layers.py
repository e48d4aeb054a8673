"""Who may know whom, read from the imports of the code.

A room reaches itself and the rooms before it in the table, nothing else. A module that no table names is seen
through: what it imports counts as imported by whoever imports it. No modules import each other in a circle.
Every import counts, in a function or for annotations alone too.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

FRAMEWORKS = ("torch", "oneflow", "mindspore", "tensorflow", "megengine")

# From the bottom to the top; rooms of one line do not know each other. `__init__` is the public face.
LEVELS = (
    ("errors",),
    ("layout",),
    ("work",),
    ("transports",),
    ("communicator",),
    ("world",),
    ("__init__",),
    FRAMEWORKS,
    ("conformance",),
    ("__main__",),
)
HEIGHT = {room: height for height, rooms in enumerate(LEVELS) for room in rooms}

# Where torch's process groups may be named, and the module that may not reach them all the same.
PROCESS_GROUPS = ("torch.distributed", "torch._C._distributed_c10d")
# collshim.run starts torch's elastic agent, which lives in torch.distributed too.
MAY_NAME_PROCESS_GROUPS = tuple(f"collshim.{name}" for name in ("transports.*", "world", "c10d*", "run", "torch*"))
NEVER_REACHES_PROCESS_GROUPS = "collshim.transports.local"

# What runs on the real framework as well, in an environment without collshim, and what it may import there.
SPOKEN = ("record", "recorder", "bindings", "cases", "values", "reference", "gradients", "foreign")
STAND_ALONE = tuple(f"collshim.conformance.{name}{more}" for name in SPOKEN for more in ("", ".*"))
THERE = {*sys.stdlib_module_names, "numpy", *FRAMEWORKS}

FOLDERS = {
    "collshim": "collshim",
    "adapters": "collshim",
    "conformance": "collshim.conformance",
    "demo": "collshim.demo",
}

# Whose modules must be free of circles, beside the engine's.
PARTS = (*(f"adapters/{framework}" for framework in FRAMEWORKS), "conformance", "demo")

Modules = dict[str, Path]


def find_modules(root: Path) -> Modules:
    """Every module by its dotted name."""
    found = {}
    for folder, package in FOLDERS.items():
        for path in (root / folder).rglob("*.py"):
            parts = (*package.split("."), *path.relative_to(root / folder).with_suffix("").parts)
            found[".".join(parts).removesuffix(".__init__")] = path
    return found


def _imports(name: str, path: Path) -> Iterator[str]:
    """Dotted names that a module imports, `from a import b` being a.b, and the names of torch it spells."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(name, path, node)
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute) and ast.unparse(node).startswith("torch."):
            yield ast.unparse(node)


def _absolute(name: str, path: Path, node: ast.ImportFrom) -> str:
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    above = package[: len(package) - node.level + 1] if node.level else []
    return ".".join([*above, *filter(None, [node.module])])


def _neighbours(name: str, modules: Modules) -> set[str]:
    """Modules of the four folders that a module imports."""
    found = set()
    for target in _imports(name, modules[name]):
        parts = target.split(".")
        prefixes = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
        found.add(next((prefix for prefix in prefixes if prefix in modules), name))
    return found - {name}


def _reached(name: str, neighbours: dict[str, set[str]]) -> set[str]:
    """Every module that a module imports, itself or through others."""
    reached, waiting = set[str](), neighbours.get(name, set())
    while waiting:
        reached |= waiting
        waiting = set[str]().union(*(neighbours[target] for target in waiting)) - reached
    return reached


def circles(modules: Modules, root: Path) -> list[list[str]]:
    """The files of each circle of imports."""
    neighbours = {name: _neighbours(name, modules) for name in modules}
    reached = {name: _reached(name, neighbours) for name in modules}
    members = {frozenset(other for other in reached[name] if name in reached[other]) for name in modules}
    return sorted(sorted(modules[name].relative_to(root).as_posix() for name in circle) for circle in members if circle)


def room(name: str) -> str:
    return name.split(".")[1] if "." in name else "__init__"


def trails(name: str, modules: Modules) -> Iterator[list[str]]:
    """Ways from a module to the first that a table names, through those that none does."""
    seen, waiting = {name}, [[name]]
    while waiting:
        trail = waiting.pop()
        for target in _neighbours(trail[-1], modules) - seen:
            seen.add(target)
            if room(target) in HEIGHT:
                yield [*trail, target]
            else:
                waiting.append([*trail, target])


def upward_trails(modules: Modules) -> list[str]:
    return sorted(
        " -> ".join(trail)
        for name in modules
        if room(name) in HEIGHT
        for trail in trails(name, modules)
        if room(trail[-1]) != room(name) and HEIGHT[room(trail[-1])] >= HEIGHT[room(name)]
    )


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


def names_process_groups(name: str, modules: Modules) -> bool:
    return any(
        f"{target}.".startswith(f"{owner}.") for target in _imports(name, modules[name]) for owner in PROCESS_GROUPS
    )


def misplaced_process_groups(modules: Modules) -> list[str]:
    """Modules of the engine and the adapters that name process groups though the table does not let them."""
    ours = [name for name in modules if room(name) != "conformance"]
    return [n for n in ours if names_process_groups(n, modules) and not _matches(n, MAY_NAME_PROCESS_GROUPS)]


def private_imports(modules: Modules) -> list[str]:
    """Private names of an adapter that the suite imports."""
    return [
        f"{name}: {target}"
        for name in modules
        if room(name) == "conformance"
        for target in _imports(name, modules[name])
        if target.startswith(tuple(f"collshim.{framework}." for framework in FRAMEWORKS)) and "._" in target
    ]


def foreign_imports(modules: Modules) -> list[str]:
    """What the stand-alone part of the suite imports and would not find beside the real framework."""
    return [
        f"{name}: {target}"
        for name in modules
        if _matches(name, STAND_ALONE)
        for target in _imports(name, modules[name])
        if target.split(".")[0] not in THERE
        and not f"{target}.".startswith(tuple(f"collshim.conformance.{name}." for name in SPOKEN))
    ]


@pytest.fixture(scope="module")
def modules(root: Path) -> Modules:
    return find_modules(root)


@pytest.fixture(scope="module")
def circles_of_the_tree(modules: Modules, root: Path) -> list[list[str]]:
    return circles(modules, root)


def test_no_room_knows_a_higher_one(modules: Modules) -> None:
    assert upward_trails(modules) == []


def _circles_in(part: str, tree: list[list[str]]) -> str:
    """A line for each circle that has a file of this part of the tree."""
    return "\n".join(" <-> ".join(files) for files in tree if any(file.startswith(f"{part}/") for file in files))


def test_no_module_of_the_engine_is_in_a_circle(circles_of_the_tree: list[list[str]]) -> None:
    assert not (lines := _circles_in("collshim", circles_of_the_tree)), lines


@pytest.mark.parametrize("part", PARTS)
def test_no_module_of_an_adapter_the_suite_or_the_demo_is_in_a_circle(
    circles_of_the_tree: list[list[str]], part: str
) -> None:
    assert not (lines := _circles_in(part, circles_of_the_tree)), lines


def test_every_adapter_is_in_the_table(frameworks: set[str]) -> None:
    assert frameworks == set(FRAMEWORKS)


def test_process_groups_are_named_where_the_table_says_alone(modules: Modules) -> None:
    assert misplaced_process_groups(modules) == []


def test_ranks_as_threads_need_no_process_groups(modules: Modules) -> None:
    reached = _reached(NEVER_REACHES_PROCESS_GROUPS, {name: _neighbours(name, modules) for name in modules})
    ranks = {NEVER_REACHES_PROCESS_GROUPS, *reached} & modules.keys()
    assert [name for name in sorted(ranks) if names_process_groups(name, modules)] == []


def test_the_suite_knows_no_adapters_private_imports(modules: Modules) -> None:
    assert private_imports(modules) == []


def test_what_runs_on_the_real_framework_needs_nothing_else(modules: Modules) -> None:
    assert foreign_imports(modules) == []


def _built(root: Path, files: dict[str, str]) -> Modules:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return find_modules(root)


WORLD = {"collshim/world.py": "", "collshim/__init__.py": "", "adapters/torch/__init__.py": ""}


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("collshim/transports/local.py", "def later():\n    from collshim.world import current"),
        ("collshim/layout.py", "from collshim import world"),
        ("collshim/communicator.py", "from collshim import Communicator"),
        ("collshim/world.py", "import collshim.torch"),
        ("adapters/oneflow/comm/__init__.py", "from collshim.torch import distributed"),
        ("adapters/oneflow/comm/__init__.py", "from ...torch import distributed"),
        ("adapters/torch/env.py", "import collshim.conformance.pool"),
    ],
)
def test_a_step_upward_is_seen(tmp_path: Path, file: str, text: str) -> None:
    files = {**WORLD, "conformance/pool.py": "", file: text}
    assert len(upward_trails(_built(tmp_path, files))) == 1


def test_a_step_upward_is_seen_through_a_module_that_no_table_names(tmp_path: Path) -> None:
    files = {**WORLD, "collshim/work.py": "import collshim.call", "collshim/call.py": "import collshim.world"}
    assert upward_trails(_built(tmp_path, files)) == ["collshim.work -> collshim.call -> collshim.world"]


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
def test_a_circle_is_seen(tmp_path: Path, files: dict[str, str]) -> None:
    assert circles(_built(tmp_path, {**WORLD, **files}), tmp_path) == [sorted(files)]


def test_circles_apart_are_listed_apart(tmp_path: Path) -> None:
    files = {"collshim/a.py": "import collshim.b", **B_IMPORTS_A, **PACKAGE_AND_MODULE}
    assert circles(_built(tmp_path, files), tmp_path) == [
        sorted(PACKAGE_AND_MODULE),
        ["collshim/a.py", "collshim/b.py"],
    ]


def test_two_ways_to_one_module_are_no_circle(tmp_path: Path) -> None:
    files = {"collshim/a.py": "import collshim.b, collshim.c", "collshim/b.py": "import collshim.c"}
    assert circles(_built(tmp_path, {**files, "collshim/c.py": ""}), tmp_path) == []


@pytest.mark.parametrize(
    "text",
    [
        "import torch.distributed as dist",
        "from torch import distributed",
        "import torch\ntorch.distributed.Store",
    ],
)
def test_a_process_group_named_elsewhere_is_seen(tmp_path: Path, text: str) -> None:
    assert misplaced_process_groups(_built(tmp_path, {"collshim/check.py": text})) == ["collshim.check"]


def test_a_look_inside_an_adapter_is_seen(tmp_path: Path) -> None:
    text = "from collshim.torch.distributed import _on_root, broadcast"
    assert private_imports(_built(tmp_path, {"conformance/test_a.py": text})) == [
        "collshim.conformance.test_a: collshim.torch.distributed._on_root"
    ]


def test_a_foreign_import_of_a_binding_is_seen(tmp_path: Path) -> None:
    text = "import json, numpy, oneflow, hypothesis"
    assert foreign_imports(_built(tmp_path, {"conformance/bindings/oneflow.py": text})) == [
        "collshim.conformance.bindings.oneflow: hypothesis"
    ]
