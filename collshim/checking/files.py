"""The files of a program: the scripts that were named, and the modules next to them that they import."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import libcst as cst
from libcst.metadata import (
    BaseMetadataProvider,
    MetadataWrapper,
    PositionProvider,
    QualifiedNameSource,
    ScopeProvider,
)

_SKIPPED = {"site-packages", "node_modules", "__pycache__", "build", "dist"}


@dataclass(frozen=True)
class Unreadable:
    """A file that cannot be parsed."""

    path: Path
    line: int
    reason: str


@dataclass(eq=False)
class File:
    """A file of valid Python; its syntax tree is built when it is needed.

    Attributes:
        path: its path.
        source: its text.
        roots: the folders from which it imports other modules of the program.
        packages: the packages that it imports under their own names.
    """

    path: Path
    source: str
    roots: tuple[Path, ...]
    packages: frozenset[str]
    _found: dict[type, Mapping[cst.CSTNode, Any]] = field(default_factory=dict, repr=False)

    @cached_property
    def module(self) -> cst.Module:
        """The file's syntax tree."""
        return cst.parse_module(self.source)

    @cached_property
    def _wrapper(self) -> MetadataWrapper:
        return MetadataWrapper(self.module, unsafe_skip_copy=True)  # only this object uses the tree

    def unreadable(self) -> Unreadable | None:
        """Return the reason why the file has no syntax tree; None if it has one."""
        try:
            _ = self._tree
            self._of(ScopeProvider, self.module)
            self._of(PositionProvider, self.module)
        except cst.ParserSyntaxError as error:
            return Unreadable(self.path, error.raw_line, "LibCST cannot read it")
        except RecursionError:
            return Unreadable(self.path, 1, "an expression is nested too deeply")
        return None

    @cached_property
    def lines(self) -> Sequence[str]:
        """The source's lines."""
        return self.source.splitlines()

    @cached_property
    def _tree(self) -> _Tree:
        tree = _Tree()
        self.module.visit(tree)
        return tree

    def line(self, node: cst.CSTNode) -> int:
        """Return the line on which a node begins."""
        return int(self._of(PositionProvider, node).start.line)

    def column(self, node: cst.CSTNode) -> int:
        """Return the column at which a node begins, from 1."""
        return int(self._of(PositionProvider, node).start.column) + 1

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """Return the node that contains a node; None for the module."""
        return self._tree.parents[node]

    def below(self, node: cst.CSTNode) -> Sequence[cst.CSTNode]:
        """Return a node and all nodes inside it, in the order of the source."""
        first, end = self._tree.spans[node]
        return self._tree.order[first:end]

    def run_by(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Yield a node and the nodes inside it that run with it, without the functions and classes that it defines."""
        position, end = self._tree.spans[node]
        while position < end:
            found = self._tree.order[position]
            if found is not node and isinstance(found, cst.FunctionDef | cst.ClassDef | cst.Lambda):
                position = self._tree.spans[found][1]
                continue
            yield found
            position += 1

    def calls(self, node: cst.CSTNode) -> list[cst.Call]:
        """Return the calls that run with a node, in the order in which they are made."""
        calls = [one for one in self.run_by(node) if isinstance(one, cst.Call)]
        return sorted(calls, key=lambda call: self._tree.left[call])

    @cached_property
    def _bound(self) -> set[str]:
        """The names that import statements bind."""
        return set(_bound_names(ast.parse(self.source)))

    def imported(self, node: cst.BaseExpression) -> list[str]:
        """Return the dotted names that an expression has through imports; several if branches import differently."""
        if dotted(node).partition(".")[0] not in self._bound:
            return []
        scope = self._of(ScopeProvider, node)
        if scope is None:
            return []
        names = scope.get_qualified_names_for(node)
        return sorted(one.name for one in names if one.source is QualifiedNameSource.IMPORT)

    def is_assigned(self, node: cst.Name) -> bool:
        """Return whether the file assigns to a name, in the scope of ``node`` or an enclosing one."""
        scope = self._of(ScopeProvider, node)
        return scope is not None and node.value in scope

    def _of(self, provider: type[BaseMetadataProvider[Any]], node: cst.CSTNode) -> Any:
        if provider not in self._found:
            self._found[provider] = self._wrapper.resolve(provider)
        return self._found[provider].get(node)


class _Tree(cst.CSTVisitor):
    """The nodes of a syntax tree in order, with each node's parent and extent."""

    def __init__(self) -> None:
        self.order: list[cst.CSTNode] = []
        self.parents: dict[cst.CSTNode, cst.CSTNode | None] = {}
        self.spans: dict[cst.CSTNode, tuple[int, int]] = {}
        self.left: dict[cst.CSTNode, int] = {}
        self._open: list[tuple[cst.CSTNode, int]] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        self.parents[node] = self._open[-1][0] if self._open else None
        self._open.append((node, len(self.order)))
        self.order.append(node)
        return not isinstance(node, cst.BaseParenthesizableWhitespace | cst.TrailingWhitespace)

    def on_leave(self, original_node: cst.CSTNode) -> None:
        _, first = self._open.pop()
        self.spans[original_node] = (first, len(self.order))
        self.left[original_node] = len(self.left)


def load(paths: Iterable[Path]) -> tuple[list[File], list[Unreadable]]:
    """Return the files of a program, and those that cannot be parsed.

    Args:
        paths: scripts, or folders whose Python files are all read; modules next to them that they import are read too.
    """
    files: dict[Path, File] = {}
    unreadable: dict[Path, Unreadable] = {}
    waiting = [(path, roots) for given in paths for path, roots in _expanded(given)]
    while waiting:
        path, roots = waiting.pop(0)
        if path.resolve() in files or path.resolve() in unreadable:
            continue
        try:
            source = path.read_text(encoding="utf-8-sig")
            tree = ast.parse(source)
        except SyntaxError as error:
            reason = f"it is not valid Python {sys.version_info[0]}.{sys.version_info[1]}: {error.msg}"
            unreadable[path.resolve()] = Unreadable(path, error.lineno or 1, reason)
            continue
        except (ValueError, OSError) as error:
            unreadable[path.resolve()] = Unreadable(path, 1, str(error))
            continue
        packages = frozenset(name.partition(".")[0] for level, name in _imports(tree) if level == 0)
        file = File(path, source, roots, packages)
        files[path.resolve()] = file
        waiting += [(found, roots) for found in _imported(file, tree)]
    return list(files.values()), list(unreadable.values())


def _expanded(given: Path) -> Iterator[tuple[Path, tuple[Path, ...]]]:
    """Yield a script, or the Python files of a folder, each with the folders that it may import from."""
    if not given.is_dir():
        yield given, (given.parent, Path())
        return
    for path in sorted(given.rglob("*.py")):
        folders = path.relative_to(given).parts[:-1]
        if not any(folder in _SKIPPED or folder.startswith(".") for folder in folders):
            yield path, (given, given.parent, path.parent)


def _imported(file: File, tree: ast.Module) -> Iterator[Path]:
    """Yield the files of the modules that a file imports, if they are part of the program."""
    for level, name in _imports(tree):
        bases = [file.path.parent.joinpath(*[".."] * (level - 1))] if level else file.roots
        found = (_file_of(base, name) for base in bases)
        yield from filter(None, found)


def _imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the modules that a file imports, or may import, each with the number of dots before it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            yield node.level, module
            yield from ((node.level, ".".join(filter(None, (module, alias.name)))) for alias in node.names)


def _bound_names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)


def _file_of(base: Path, name: str) -> Path | None:
    place = base.joinpath(*name.split(".")) if name else base
    candidates = (place.with_suffix(".py"), place / "__init__.py") if name else (place / "__init__.py",)
    return next((path for path in candidates if path.is_file()), None)


def dotted(node: cst.BaseExpression) -> str:
    """Return the text of a name, or of attributes of a name; "" for any other expression."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute) and (owner := dotted(node.value)):
        return f"{owner}.{node.attr.value}"
    return ""
