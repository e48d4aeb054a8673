"""An example of a page: run on ranks that are threads, with what each rank gave, got back and holds."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping
from types import CodeType
from typing import Any, NamedTuple

import collshim
from collshim.conformance.bindings.kinds import kind_of
from collshim.conformance.reporting.markdown import table
from collshim.frameworks import FRAMEWORKS

SIZE = 2
SECONDS = 30.0
GIVEN = ("x", "parts")  # what an example calls its input
_FILE = "<an example of collshim.conformance.spellings>"


class Seen(NamedTuple):
    """What one rank saw: its names before the last line, what that gave back, and its names then."""

    before: dict[str, str]
    returned: str
    after: dict[str, str]


def outcome(framework: str, code: str) -> str:
    """The table of what each rank gave, got back and holds afterwards.

    Raises:
        RankError: the example fails.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        by_rank: list[Seen] = collshim.launch(_seen, SIZE, args=_compiled(framework, code), timeout=SECONDS)
    changed = [name for name in by_rank[0].before if any(seen.before[name] != seen.after[name] for seen in by_rank)]
    given = [name for name in by_rank[0].before if name in GIVEN]
    titles = [f"`{name}` before" if name in changed else f"`{name}`" for name in given]
    rows = [[seen.before[name] for name in given] + [seen.returned] for seen in by_rank]
    held = [[seen.after[name] for name in changed] for seen in by_rank]
    lines = [[str(rank), *(f"`{text}`" for text in rows[rank] + held[rank])] for rank in range(SIZE)]
    return table(["rank", *titles, "comes back", *(f"`{name}` after" for name in changed)], lines)


def _compiled(framework: str, code: str) -> tuple[CodeType, CodeType, CodeType]:
    """The start, the statements, and the expression at the end, of which the value is shown.

    Compiled before the ranks are there: ``ast.parse`` in several threads at once fails in Python 3.11.
    """
    body = ast.parse(code).body
    start, made = ast.parse(FRAMEWORKS[framework].start), ast.Module(body[:-1], [])
    last = compile(ast.unparse(body[-1]), _FILE, "eval")
    return compile(start, _FILE, "exec"), compile(made, _FILE, "exec"), last


def _seen(start: CodeType, made: CodeType, last: CodeType) -> Seen:
    """On one rank."""
    names: dict[str, Any] = {}
    exec(start, names)
    there = set(names)
    exec(made, names)
    own = [name for name in names if name not in there]
    before = {name: _short(names[name]) for name in own}
    returned = eval(last, names)
    return Seen(before, _short(returned), {name: _short(names[name]) for name in own})


def _short(value: Any) -> str:
    """``[1, 2]`` is a tensor; a list or a tuple of tensors is written as such, a handle by the name of its type."""
    kind = kind_of(value)
    if kind is not None:
        return str(kind.read(value).astype(int).tolist())
    if isinstance(value, list | tuple):
        return _joined(value)
    plain = value is None or isinstance(value, int | float | str | Mapping)
    return str(value) if plain else type(value).__name__


def _joined(value: list[Any] | tuple[Any, ...]) -> str:
    inner = ", ".join(map(_short, value))
    return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' * (len(value) == 1)})"
