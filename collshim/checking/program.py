"""A complete program: its files, their functions, and the collectives that each function calls."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from collshim.checking.calls import Call, call_of
from collshim.checking.files import File, dotted
from collshim.checking.values import Values
from collshim.frameworks import FRAMEWORKS

_DEEPEST = 6
_CONDITIONS = re.compile(r"^\s*(?:el)?if\b.*(?:rank|is_main|is_master|is_chief|is_leader)", re.I | re.M)
"""A word that every file with a condition on the rank contains."""

_LOGS = re.compile(
    r"(?:^|[._])(?:log(?:ger|ging|s)?|writer|console|wandb|bar|pbar|tqdm|stdout|stderr|file|fp?|out)$", re.I
)
"""The names of objects whose methods call no collectives."""

_HARMLESS = {"format", "join", "append", "extend", "items", "keys", "values", "get", "split", "strip", "item", "update"}


@dataclass(frozen=True, eq=False)
class Step:
    """A call of a collective, or of a function of the program that calls one.

    Attributes:
        node: the call.
        kind: the collective.
        name: the function that is called.
    """

    node: cst.Call
    kind: str
    name: str


class Program:
    """The files of a program, without those that neither import a framework nor have a condition on the rank."""

    def __init__(self, files: Sequence[File]) -> None:
        concerned = [file for file in files if uses_framework(file) or _CONDITIONS.search(file.source)]
        failures = {file: file.unreadable() for file in concerned}
        self.unreadable = [failure for failure in failures.values() if failure]
        self.files = [file for file in concerned if not failures[file]]
        self.values = {file: Values(file) for file in self.files}
        self._functions: dict[tuple[str, str], list[tuple[File, cst.FunctionDef]]] = {}
        self._calls: dict[cst.Call, Call | None] = {}
        self._unknown: dict[cst.Call, bool] = {}
        self._steps: dict[cst.CSTNode, list[Step]] = {}
        for file in self.files:
            for function in functions(file):
                self._functions.setdefault((file.path.stem, function.name.value), []).append((file, function))

    def call(self, node: cst.Call, file: File) -> Call | None:
        """Return the ``Call`` of a node that calls a collective; None for other nodes."""
        if node not in self._calls:
            self._calls[node] = call_of(node, self.values[file])
        return self._calls[node]

    def steps(self, node: cst.CSTNode, file: File, depth: int = 0) -> list[Step]:
        """Return the collectives of all ranks that a node calls, itself or through program functions, in order."""
        if node not in self._steps:
            self._steps[node] = self._found(node, file, depth)
        return self._steps[node]

    def _found(self, node: cst.CSTNode, file: File, depth: int) -> list[Step]:
        found: list[Step] = []
        for call in file.calls(node):
            known = self.call(call, file)
            if known is not None:
                if known.is_of_world():
                    found.append(Step(call, known.collective.kind, known.collective.name))
            elif depth < _DEEPEST and (target := self._called(call, file)):
                below = self.steps(target[1].body, target[0], depth + 1)
                found += [Step(call, step.kind, target[1].name.value) for step in below]
        return found

    def is_unknown(self, node: cst.Call, file: File, depth: int = 0) -> bool:
        """Return whether a call may call collectives, as far as is known.

        Calls of libraries, builtins and loggers do not, nor do the program's functions that make no other calls.
        """
        if self.call(node, file) or (file.imported(node.func) and not self._called(node, file)):
            return False
        if target := self._called(node, file):
            inner = target[0].calls(target[1].body)
            return depth >= _DEEPEST or any(self.is_unknown(call, target[0], depth + 1) for call in inner)
        owner, _, last = dotted(node.func).rpartition(".")
        is_builtin = not owner and hasattr(builtins, last)
        return not (is_builtin or last in _HARMLESS or _LOGS.search(owner) is not None)

    def _called(self, node: cst.Call, file: File) -> tuple[File, cst.FunctionDef] | None:
        """Return the program's function that a call refers to, if only one has its name."""
        name = dotted(node.func)
        owner, _, last = name.rpartition(".")
        if owner not in ("", "self"):
            places = [(path.rpartition(".")[0].rpartition(".")[2], last) for path in file.imported(node.func)]
        else:
            places = [(file.path.stem, last)]
            places += [(path.rpartition(".")[0].rpartition(".")[2], last) for path in file.imported(node.func)]
        found = [one for place in places for one in self._functions.get(place, ())]
        return found[0] if len(found) == 1 else None


def uses_framework(file: File) -> bool:
    """Return whether a file imports a framework, or collshim's adapter of one; of torch, only its distributed part."""
    names = file.packages & {*FRAMEWORKS, "collshim"}
    return bool(names - {"torch"}) or (bool(names) and "distributed" in file.source)


def functions(file: File) -> Iterator[cst.FunctionDef]:
    """Yield all functions and methods of a file."""
    yield from (node for node in file.below(file.module) if isinstance(node, cst.FunctionDef))
