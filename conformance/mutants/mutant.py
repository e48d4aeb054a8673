"""A mutant: one small fault in one file, and the collectives in which it must be noticed."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from dataclasses import dataclass

from collshim.frameworks import FRAMEWORKS


class PatchError(Exception):
    """A patch does not fit the code."""


@dataclass(frozen=True, kw_only=True)
class Mutant(ABC):
    """One fault.

    Attributes:
        name: the name of the mutant.
        layer: "engine", "layout", "transports" or "adapters"; "mechanical" if a rule generated it.
        file: the file below the package's folder: ``layout.py``, ``oneflow/comm/movement.py``.
        within: the function or method that it is in: ``split``, ``Work.then``; empty for the entire file.
        fault: what goes wrong, in words.
        collectives: the collectives whose comparison must fail; empty for any.
        transport: the only one that shows it: "threads", "processes", "unchecked", "gloo" or "unchecked gloo"; empty if
            several do.
    """

    name: str
    layer: str
    file: str
    fault: str
    within: str = ""
    collectives: tuple[str, ...] = ()
    transport: str = ""

    @property
    def framework(self) -> str:
        """The framework whose adapter the fault is in; empty for the engine."""
        folder = self.file.partition("/")[0]
        return folder if folder in FRAMEWORKS else ""

    @property
    def module(self) -> str:
        """The dotted name of the module that the fault is in."""
        return ".".join(["collshim", *self.file.removesuffix(".py").split("/")]).removesuffix(".__init__")

    @abstractmethod
    def apply(self, source: str) -> str:
        """Return the text of the file with the fault in it.

        Raises:
            PatchError: the fault does not fit this text.
        """


def span(source: str, within: str) -> tuple[int, int]:
    """Return the start and the end of the function, method or class ``within`` in ``source``, in characters.

    Raises:
        PatchError: there is not exactly one such definition.
    """
    if not within:
        return 0, len(source)
    node: ast.AST = ast.parse(source)
    for name in within.split("."):
        node = _inner(node, name, within)
    start, end = getattr(node, "lineno", 1), getattr(node, "end_lineno", 1)
    lines = source.splitlines(keepends=True)
    return sum(map(len, lines[: start - 1])), sum(map(len, lines[:end]))


def _inner(node: ast.AST, name: str, within: str) -> ast.AST:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    found = [inner for inner in getattr(node, "body", []) if isinstance(inner, kinds) and inner.name == name]
    if len(found) != 1:
        raise PatchError(f"there are {len(found)} definitions of {within}, should be one")
    return found[0]
