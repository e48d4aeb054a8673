"""A document's example, and what a rank saw when it ran it."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, NamedTuple, cast

from collshim import world
from collshim.demo import notation
from collshim.world import World

Names = dict[str, Any]


class Example(NamedTuple):
    """Code that a document tells its reader to write. All fields but ``name`` are Python, run as they stand.

    Attributes:
        name: what it shows; its results are expected under this name.
        call: what is shown; ``returned`` is the value of its last line.
        before: what is run first: the inputs.
        after: what is shown and run last.
        given: what to show as the input.
        back: what came back.
        holds: where the result is then; ``back`` by default.
        fills: the argument that the call fills, where the result is in one.
        replicas: whether ``given`` and ``holds`` are sequences with an item for each replica of this rank.
    """

    name: str
    call: str
    before: str = ""
    after: str = ""
    given: str = "input"
    back: str = "returned"
    holds: str = ""
    fills: str = ""
    replicas: bool = False


class Sheet(NamedTuple):
    """Examples of one framework that run in worlds of one size.

    Attributes:
        framework: its name, and in small letters that of the file with the results.
        title: what is shown, by its dotted path.
        setting: where it runs, in words.
        ranks: the size of the worlds.
        start: makes the names that the examples use, on each rank, in its world.
        examples: what to run, in this order.
    """

    framework: str
    title: str
    setting: str
    ranks: int
    start: Callable[[], Names]
    examples: tuple[Example, ...]


class Row(NamedTuple):
    """What one rank, or one replica, gave and got.

    Attributes:
        given, back, held: texts for people: the input, the structure that came back, the values.
        values: the values again, as JSON knows them.
        dtype: that of the values.
    """

    given: str
    back: str
    held: str
    values: Any
    dtype: str


def observe(sheet: Sheet) -> list[list[Row]]:
    """Run the examples on this rank, in a world of ``sheet.ranks`` neighbours; the rows of each."""
    everybody = world.current()
    first = everybody.rank - everybody.rank % sheet.ranks
    neighbours = range(first, first + sheet.ranks)
    part = everybody if sheet.ranks == everybody.size else cast(World, everybody.split(neighbours))
    with world.use(part):
        names = sheet.start()
        return [_rows(example, dict(names)) for example in sheet.examples]


def _rows(example: Example, names: Names) -> list[Row]:
    _run(example.before, names)
    given = notation.copied(_value(example.given, names))
    names["returned"] = _run(example.call, names)
    _run(example.after, names)
    back = notation.structure(_value(example.back, names))
    if example.fills:
        back = f"{back} ({example.fills} filled)"
    held = _value(example.fills or example.holds or example.back, names)
    pairs = zip(given, held, strict=True) if example.replicas else [(given, held)]
    return [_row(one, back, other) for one, other in pairs]


def _row(given: Any, back: str, held: Any) -> Row:
    return Row(notation.short(given), back, notation.short(held), notation.plain(held), notation.dtype(held))


def _run(code: str, names: Names) -> Any:
    """Run statements; the value of the last, if it is an expression."""
    body = ast.parse(code).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, type_ignores=[]), "<example>", "exec"), names)
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), "<example>", "eval"), names)


def _value(expression: str, names: Names) -> Any:
    return eval(compile(expression, "<example>", "eval"), names)
