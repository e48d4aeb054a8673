"""Mutants that a rule generates: a comparison is negated, an index is off by one, or a copy is rounded.

Every place in the files that move or compute data is a candidate. A hash of the place decides which are chosen, so a
change elsewhere in the code does not change the choice. At most one place and one copy are chosen from each file.
``harmless.toml`` lists places that are skipped because a fault there changes nothing that a caller can see, each with
the reason; the next candidate is chosen instead.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from collshim.conformance.mutants import tree
from collshim.conformance.mutants.mutant import Mutant, PatchError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

COUNT = 12
SEED = "collshim"
HARMLESS = Path(__file__).parent / "harmless.toml"

FILES = (
    "arrays/arithmetic.py",
    "autograd.py",
    "calls/aliasing.py",
    "calls/allocation.py",
    "calls/collective.py",
    "calls/plan.py",
    "communicator.py",
    "layout.py",
    "objects.py",
    "posting.py",
    "repeating.py",
    "transports/compute.py",
    "transports/matching.py",
    "transports/processes/fingerprint.py",
    "transports/processes/gloo.py",
    "transports/processes/reductions.py",
    "transports/processes/request.py",
    "torch/distributed/arguments.py",
    "torch/distributed/forms.py",
    "oneflow/comm/movement.py",
    "mindspore/communication/comm_func/splits.py",
    "tensorflow/distribute/collectives.py",
    "megengine/functional/distributed.py",
    "megengine/functional/_axes.py",
)

COPYING = ("coalesced.py", "transports/threads/messages.py", "transports/threads/transport.py")
"""Files in which only copies are candidates."""

_TRANSPORTS = {
    "transports/processes/fingerprint.py": "gloo",
    "transports/processes/gloo.py": "gloo",
    "transports/processes/reductions.py": "gloo",
    "transports/processes/request.py": "processes",
    "transports/threads/messages.py": "threads",
    "transports/threads/transport.py": "threads",
}
"""The transport of each file that only one transport uses, or that one transport uses more than the others."""

_OPPOSITE: dict[type[ast.cmpop], str] = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Lt: ">=",
    ast.GtE: "<",
    ast.Gt: "<=",
    ast.LtE: ">",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}


_ROUNDED = "the copied data is rounded to half its width"
_HALVED = (
    "(lambda one, torch=__import__('torch'): one.to({torch.float64: torch.float32, torch.float32: torch.bfloat16,"
    " torch.int64: torch.int32}.get(one.dtype, one.dtype)))"
)


@dataclass(frozen=True, kw_only=True)
class CodeLocation(Mutant):
    """A mechanical mutant, which replaces the ``count``-th occurrence of ``old`` in its function with ``new``."""

    old: str
    new: str
    count: int

    @property
    def is_copy(self) -> bool:
        """Whether the mutant rounds a copy."""
        return self.fault == _ROUNDED

    def apply(self, source: str) -> str:
        """Return the text of the file with ``old`` replaced by ``new``."""
        for place, start, end in _places(self.file, source):
            if place == self:
                return source[:start] + self.new + source[end:]
        raise PatchError(f"{self.name}: {self.file}, {self.within} has no such place")


def mechanical(count: int = COUNT) -> list[CodeLocation]:
    """Return the mutants of this package's code: ``count`` of them, and the copies."""
    harmless = {entry["name"] for entry in declared_harmless()}
    chosen: dict[str, CodeLocation] = {}
    copies: dict[str, CodeLocation] = {}
    for place in sorted(candidates(), key=lambda place: sha256(f"{SEED} {place.name}".encode()).digest()):
        if place.name not in harmless:
            (copies if place.is_copy else chosen).setdefault(place.file, place)
    return [*list(chosen.values())[:count], *copies.values()]


def declared_harmless() -> list[dict[str, Any]]:
    """Return the places where a fault changes nothing that a caller can see, each with ``name`` and ``reason``."""
    entries: list[dict[str, Any]] = tomllib.loads(HARMLESS.read_text(encoding="utf-8")).get("harmless", [])
    return entries


def candidates() -> list[CodeLocation]:
    """Return every candidate."""
    found = [
        place for file in (*FILES, *COPYING) for place, _, _ in _places(file, (tree.PACKAGE / file).read_text("utf-8"))
    ]
    return [place for place in found if place.is_copy or place.file in FILES]


def _places(file: str, source: str) -> Iterator[tuple[CodeLocation, int, int]]:
    """Yield every place in a file, with the start and the end of its text."""
    starts = _starts_of_lines(source)
    seen: Counter[tuple[str, str]] = Counter()
    for within, node in _nodes(ast.parse(source), ""):
        change = _change(node, source, starts)
        if change is not None:
            start, end, new, fault = change
            old = source[start:end]
            count = seen[within, old] = seen[within, old] + 1
            yield (
                CodeLocation(
                    name=f"{file}, {within}: {' '.join(old.split())} ({count})",
                    layer="mechanical",
                    file=file,
                    fault=fault,
                    within=within,
                    transport=_TRANSPORTS.get(file, ""),
                    old=old,
                    new=new,
                    count=count,
                ),
                start,
                end,
            )


def _nodes(node: ast.AST, within: str) -> Iterator[tuple[str, ast.AST]]:
    """Yield every expression inside a function, with the function's name, except annotations."""
    for name, value in ast.iter_fields(node):
        inner = [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, ast.AST)]
        for one in inner if name not in ("annotation", "returns", "decorator_list") else ():
            named = isinstance(one, ast.FunctionDef | ast.ClassDef)
            inside = f"{within}.{one.name}".lstrip(".") if isinstance(one, ast.FunctionDef | ast.ClassDef) else within
            if within and not named:
                yield inside, one
            yield from _nodes(one, inside)


def _change(node: ast.AST, source: str, starts: list[int]) -> tuple[int, int, str, str] | None:
    """Return the start and the end of a place, its new text, and the fault in words."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        start, end = _span(node, starts)
        left, right = _span(node.left, starts)[1], _span(node.comparators[0], starts)[0]
        opposite = _OPPOSITE[type(node.ops[0])]
        new = f"{source[start:left]} {opposite} {source[right:end]}"
        return start, end, new, f"the comparison is `{opposite}`"
    if isinstance(node, ast.Subscript):
        return _shift_index(node, source, starts)
    return _round_copy(node, source, starts)


def _round_copy(node: ast.AST, source: str, starts: list[int]) -> tuple[int, int, str, str] | None:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "copy_"):
        return None
    (start, end), (first, last) = _span(node, starts), _span(node.args[0], starts)
    return start, end, f"{source[start:first]}{_HALVED}({source[first:last]}){source[last:end]}", _ROUNDED


def _shift_index(node: ast.Subscript, source: str, starts: list[int]) -> tuple[int, int, str, str] | None:
    bounds = [node.slice.lower, node.slice.upper] if isinstance(node.slice, ast.Slice) else [node.slice]
    for bound in bounds:
        if isinstance(bound, ast.Constant) and isinstance(bound.value, int):
            (start, end), (first, last) = _span(node, starts), _span(bound, starts)
            new = f"{source[start:first]}{bound.value + 1}{source[last:end]}"
            return start, end, new, f"the index is {bound.value + 1} instead of {bound.value}"
    return None


def _span(node: ast.expr, starts: list[int]) -> tuple[int, int]:
    end_line, end = node.end_lineno or node.lineno, node.end_col_offset or 0
    return starts[node.lineno - 1] + node.col_offset, starts[end_line - 1] + end


def _starts_of_lines(source: str) -> list[int]:
    """Return the offset of each line in characters; the code is ASCII, because ``ast`` counts columns in bytes."""
    if not source.isascii():
        raise PatchError("a file that a rule changes has characters beyond ASCII")
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts
