"""An example on a page: run on ranks that are threads, with each rank's input, result and variables afterwards."""

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
GIVEN = ("x", "parts")  # the names of an example's input
_FILE = "<an example of collshim.conformance.spellings>"


class Seen(NamedTuple):
    """One rank's variables before the last line, the value of that line, and the variables after it."""

    before: dict[str, str]
    returned: str
    after: dict[str, str]


def outcome(framework: str, code: str) -> str:
    """Return the table of each rank's input, result and variables afterwards.

    Raises:
        RankError: the example fails.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        by_rank: list[Seen] = collshim.launch(_run_on_rank, SIZE, args=_compile(framework, code), timeout=SECONDS)
    changed = [name for name in by_rank[0].before if any(seen.before[name] != seen.after[name] for seen in by_rank)]
    given = [name for name in by_rank[0].before if name in GIVEN]
    titles = [f"`{name}` before" if name in changed else f"`{name}`" for name in given]
    rows = [[seen.before[name] for name in given] + [seen.returned] for seen in by_rank]
    held = [[seen.after[name] for name in changed] for seen in by_rank]
    lines = [[str(rank), *(f"`{text}`" for text in rows[rank] + held[rank])] for rank in range(SIZE)]
    return table(["rank", *titles, "returns", *(f"`{name}` after" for name in changed)], lines)


def _compile(framework: str, code: str) -> tuple[CodeType, CodeType, CodeType]:
    """Compile the start, the statements, and the final expression, whose value is shown.

    This happens before the ranks exist, because in Python 3.11 ``ast.parse`` fails in several threads at once.
    """
    body = ast.parse(code).body
    start, made = ast.parse(FRAMEWORKS[framework].start), ast.Module(body[:-1], [])
    last = compile(ast.unparse(body[-1]), _FILE, "eval")
    return compile(start, _FILE, "exec"), compile(made, _FILE, "exec"), last


def _run_on_rank(start: CodeType, made: CodeType, last: CodeType) -> Seen:
    """Run the example on one rank."""
    names: dict[str, Any] = {}
    exec(start, names)
    there = set(names)
    exec(made, names)
    own = [name for name in names if name not in there]
    before = {name: _short(names[name]) for name in own}
    returned = eval(last, names)
    return Seen(before, _short(returned), {name: _short(names[name]) for name in own})


def _short(value: Any) -> str:
    """Return ``[1, 2]`` for a tensor, a list or a tuple of those for several, and the name of its type for a handle."""
    kind = kind_of(value)
    if kind is not None:
        return str(kind.read(value).astype(int).tolist())
    if isinstance(value, list | tuple):
        return _join(value)
    plain = value is None or isinstance(value, int | float | str | Mapping)
    return str(value) if plain else type(value).__name__


def _join(value: list[Any] | tuple[Any, ...]) -> str:
    inner = ", ".join(map(_short, value))
    return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' * (len(value) == 1)})"
