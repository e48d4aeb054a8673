"""A program of ``programs/``: its header, which only the scorer reads, and its two functions, which ranks run.

A file opens with a docstring, ``class: what is wrong``, then one field a line: ``blame``, the ranks that are wrong;
and where they differ from the usual ``told``, the ranks that must get an error (all that live); ``dead``, those that
end themselves; ``options``, collshim's options that are switched on; ``on``, the only ways of running it; ``limit``,
why no check can see it. The wrong lines carry a mark.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "programs"
SIZE = 3
"""Ranks of every program: the fewest of which one is in the minority."""

PARTS = ("fault", "twin")
_MARK = "# <- here"
_FIELDS = {"blame", "told", "dead", "options", "on", "limit"}


@dataclass(frozen=True)
class Program:
    """One fault and its corrected twin.

    Attributes:
        name: the file's name without its ending.
        fault: the class of the fault.
        summary: what is wrong, in words.
        blame: the ranks that are wrong.
        told: the ranks that must get an error.
        dead: the ranks that end themselves.
        options: names of collshim's options that the program runs with.
        on: the ways of running it that mean something; none for all.
        limit: why no check of calls can see it; empty where one can.
        lines: the numbers of the wrong lines.
    """

    name: str
    fault: str
    summary: str
    blame: frozenset[int]
    told: frozenset[int]
    dead: frozenset[int]
    options: tuple[str, ...]
    on: tuple[str, ...]
    limit: str
    lines: tuple[int, ...]

    @property
    def file(self) -> str:
        """The name under which error texts and tracebacks know it."""
        return f"{self.name}.py"

    def runs_on(self, face: str) -> bool:
        """Whether the program means something where ranks are ``face``."""
        return not self.on or face in self.on

    def function(self, part: str) -> Callable[[Any], None]:
        """Its ``fault`` or ``twin``, which takes ``torch.distributed`` or what stands in for it.

        Compiled under the file's bare name: installed, the file lies within collshim, whose own lines error texts
        leave out; a user's script does not.
        """
        namespace: dict[str, Any] = {"__name__": self.name}
        exec(compile(_source(self.name), self.file, "exec"), namespace)
        function: Callable[[Any], None] = namespace[part]
        return function


def read(name: str) -> Program:
    """The program of this name, as its header describes it."""
    source = _source(name)
    head, *rest = (ast.get_docstring(ast.parse(source)) or "").splitlines()
    fault, _, summary = head.rstrip(".").partition(": ")
    fields = dict(line.split(": ", 1) for line in rest if line)
    dead = _ranks(fields.get("dead", ""))
    error_ranks = _ranks(fields["told"]) if "told" in fields else frozenset(range(SIZE)) - dead
    lines = [number for number, line in enumerate(source.splitlines(), 1) if line.endswith(_MARK)]
    if not lines or not summary or not _FIELDS >= fields.keys() >= {"blame"}:
        raise ValueError(f"{name}.py: the header is {head!r} and {fields}, should be a class, a summary and its fields")
    options, on = fields.get("options", "").split(), fields.get("on", "").split()
    blame = _ranks(fields["blame"])
    limit = fields.get("limit", "")
    return Program(name, fault, summary, blame, error_ranks, dead, tuple(options), tuple(on), limit, tuple(lines))


def programs() -> list[Program]:
    """Every program, class by class in the order of names."""
    return sorted((read(path.stem) for path in FOLDER.glob("*.py")), key=place)


def place(program: Program) -> tuple[bool, str, str]:
    """The place of a program among the others: those that no check can see come last."""
    return bool(program.limit), program.fault, program.name


def _source(name: str) -> str:
    return (FOLDER / f"{name}.py").read_text(encoding="utf-8")


def _ranks(text: str) -> frozenset[int]:
    return frozenset(int(rank) for rank in text.split())
