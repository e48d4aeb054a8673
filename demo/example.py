"""A document's example, and its results on a rank."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, NamedTuple, cast

from collshim import world
from collshim.demo import notation
from collshim.world import World

Names = dict[str, Any]


class Example(NamedTuple):
    """Code that a document shows its readers. All fields but ``name`` and ``replicas`` are Python, run unchanged.

    Attributes:
        name: what the example shows; its expected results have this name.
        call: the code that is shown; ``returned`` is the value of its last line.
        before: the code that is run first, to make the inputs.
        after: the code that is shown and run last.
        given: the expression to show as the input.
        back: the expression for the returned structure.
        holds: the expression for the result; ``back`` by default.
        fills: the argument that the call fills, if the result is in one.
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
        framework: the name of the framework; in lower case, the name of the file with the results.
        title: the dotted path of the function that is shown.
        setting: the setting of the examples, in words.
        ranks: the size of the worlds.
        start: returns the names that the examples use, on each rank, in its world.
        examples: the examples, in order.
    """

    framework: str
    title: str
    setting: str
    ranks: int
    start: Callable[[], Names]
    examples: tuple[Example, ...]


class Row(NamedTuple):
    """The input and the result of one rank, or one replica.

    Attributes:
        given, back, held: texts for people: the input, the returned structure, the values of the result.
        values: the values of the result as JSON.
        dtype: the dtype of the values.
    """

    given: str
    back: str
    held: str
    values: Any
    dtype: str


def observe(sheet: Sheet) -> list[list[Row]]:
    """Run the examples on this rank, in a world of ``sheet.ranks`` neighbours; return the rows of each example."""
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
    """Run statements; return the value of the last one if it is an expression."""
    body = ast.parse(code).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, type_ignores=[]), "<example>", "exec"), names)
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), "<example>", "eval"), names)


def _value(expression: str, names: Names) -> Any:
    return eval(compile(expression, "<example>", "eval"), names)
