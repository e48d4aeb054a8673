"""A program of ``programs/``: its header, which only the scorer reads, and its two functions, which ranks run.

A program is a function that is wrong, and its twin, the function of that name and ``_twin``. The first one's docstring
opens with ``class: what is wrong``, followed by one field per line: ``blame``, the ranks that are wrong; if they differ
from the default, ``affected``, the ranks that must report an error (by default all live ranks), and ``dead``, those
that end themselves; ``options``, collshim's options that are switched on; ``on``, the only ways of running it;
``limit``, why no check can detect it; ``twin``, the twin if it also belongs to another program. The wrong lines are
marked.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "programs"
SIZE = 3
"""The number of ranks of every program: the fewest in which one rank is in the minority."""

PARTS = ("fault", "twin")
_MARK = "# <- here"
_TWIN = "_twin"
_FIELDS = {"blame", "affected", "dead", "options", "on", "limit", "twin"}


@dataclass(frozen=True)
class Program:
    """One fault and its corrected twin.

    Attributes:
        name: the name of the faulty function.
        twin: the name of the corrected one.
        file: the name of their file in error texts and tracebacks.
        fault: the class of the fault.
        summary: what is wrong, in words.
        blame: the ranks that are wrong.
        affected: the ranks that must report an error.
        dead: the ranks that end themselves.
        options: names of collshim's options that the program runs with.
        on: the ways of running it that make sense; empty for all.
        limit: why no check of calls can detect it; empty if one can.
        lines: the numbers of the wrong lines.
    """

    name: str
    twin: str
    file: str
    fault: str
    summary: str
    blame: frozenset[int]
    affected: frozenset[int]
    dead: frozenset[int]
    options: tuple[str, ...]
    on: tuple[str, ...]
    limit: str
    lines: tuple[int, ...]

    def runs_on(self, face: str) -> bool:
        """Return whether the program makes sense if ranks are ``face``."""
        return not self.on or face in self.on

    def function(self, part: str) -> Callable[[Any], None]:
        """Return its ``fault`` or ``twin``, which takes ``torch.distributed`` or its replacement.

        It is compiled under the file's bare name: once installed, the file is inside collshim, whose own lines do not
        appear in error texts, unlike those of a user's script.
        """
        namespace: dict[str, Any] = {"__name__": self.file.removesuffix(".py")}
        exec(compile((FOLDER / self.file).read_text(encoding="utf-8"), self.file, "exec"), namespace)
        function: Callable[[Any], None] = namespace[self.twin if part == "twin" else self.name]
        return function


def read(name: str) -> Program:
    """Return the program of this name."""
    return next(program for program in programs() if program.name == name)


def programs() -> list[Program]:
    """Return every program, class by class in the order of names."""
    return sorted((program for path in FOLDER.glob("*.py") for program in _of_file(path)), key=place)


def _of_file(path: Path) -> Iterator[Program]:
    source = path.read_text(encoding="utf-8")
    marked = [number for number, line in enumerate(source.splitlines(), 1) if line.endswith(_MARK)]
    functions = {node.name: node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}
    for name, function in functions.items():
        if not name.endswith(_TWIN) and not name.startswith("_"):  # skip helpers of several programs
            lines = range(function.lineno, (function.end_lineno or 0) + 1)
            program = _program(path.name, function, tuple(number for number in marked if number in lines))
            if program.twin not in functions:
                raise ValueError(f"{path.name}: {name} has no function {program.twin}")
            yield program


def _program(file: str, function: ast.FunctionDef, lines: tuple[int, ...]) -> Program:
    """Read the function's header."""
    name = function.name
    head, *rest = (ast.get_docstring(function) or "").splitlines() or [""]
    fault, _, summary = head.rstrip(".").partition(": ")
    fields = dict(line.split(": ", 1) for line in rest if line)
    if not lines or not summary or not _FIELDS >= fields.keys() >= {"blame"}:
        raise ValueError(f"{file}: {name} has {head!r} and {fields}, should have a class, a summary and its fields")
    dead = _ranks(fields.get("dead", ""))
    return Program(
        name,
        fields.get("twin", name + _TWIN),
        file,
        fault,
        summary,
        blame=_ranks(fields["blame"]),
        affected=_ranks(fields["affected"]) if "affected" in fields else frozenset(range(SIZE)) - dead,
        dead=dead,
        options=tuple(fields.get("options", "").split()),
        on=tuple(fields.get("on", "").split()),
        limit=fields.get("limit", ""),
        lines=lines,
    )


def place(program: Program) -> tuple[bool, str, str]:
    """Return the sort key of a program: those that no check can detect come last."""
    return bool(program.limit), program.fault, program.name


def _ranks(text: str) -> frozenset[int]:
    return frozenset(int(rank) for rank in text.split())
