"""The modules of the repository, and their imports, read from their text."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

FOLDERS = {
    "collshim": "collshim",
    "adapters": "collshim",
    "conformance": "collshim.conformance",
    "demo": "collshim.demo",
    "tests": "tests",
}

Modules = dict[str, Path]


def find_modules(root: Path) -> Modules:
    """Find every module by its dotted name."""
    modules = {}
    for folder, package in FOLDERS.items():
        for path in (root / folder).rglob("*.py"):
            parts = (*package.split("."), *path.relative_to(root / folder).with_suffix("").parts)
            modules[".".join(parts).removesuffix(".__init__")] = path
    return modules


@cache
def imports(name: str, path: Path) -> tuple[str, ...]:
    """Return the dotted names that a module imports, `from a import b` being a.b, and torch's names in its text."""
    return tuple(_names(name, path))


def _names(name: str, path: Path) -> Iterator[str]:
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


def neighbours_of(name: str, modules: Modules) -> set[str]:
    """Return the modules of the folders that a module imports."""
    neighbours = set()
    for target in imports(name, modules[name]):
        parts = target.split(".")
        prefixes = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
        neighbours.add(next((prefix for prefix in prefixes if prefix in modules), name))
    return neighbours - {name}


def find_reached(name: str, neighbours: Mapping[str, set[str]]) -> set[str]:
    """Return every module that a module imports, directly or through others."""
    closure, border = set[str](), neighbours[name]
    while border:
        closure |= border
        border = set[str]().union(*(neighbours[target] for target in border)) - closure
    return closure


def find_cycles(modules: Modules, root: Path) -> list[list[str]]:
    """Return the files of each cycle of imports."""
    neighbours = {name: neighbours_of(name, modules) for name in modules}
    closures = {name: find_reached(name, neighbours) for name in modules}
    members = {frozenset(other for other in closures[name] if name in closures[other]) for name in modules}
    return sorted(sorted(modules[name].relative_to(root).as_posix() for name in circle) for circle in members if circle)
