"""Calls with one fault, the same on every rank, made from valid calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from collshim.conformance.bindings.answers import Tree
from collshim.conformance.bindings.kinds import kind_of

NO_ARRAY = "a number for an array"
TUPLE = "a tuple for a list"
TOO_SHORT = "a list without its last array"


def invalidate(fault: str, arguments: tuple[Tree, ...]) -> tuple[Tree, ...]:
    """Add the fault to the last of ``arguments`` that can have it; a valid case's ``fault`` is ""."""
    if not fault:
        return arguments
    fits, change = _CHANGES[fault]
    place = max(index for index, argument in enumerate(arguments) if fits(argument))
    return (*arguments[:place], change(arguments[place]), *arguments[place + 1 :])


def _is_list(argument: Tree) -> bool:
    return type(argument) is list


def _is_array(argument: Tree) -> bool:
    return kind_of(argument) is not None


def _number(argument: Tree) -> Any:
    return 3


_CHANGES: dict[str, tuple[Callable[[Tree], bool], Callable[[Tree], Tree]]] = {
    NO_ARRAY: (_is_array, _number),
    TUPLE: (_is_list, tuple),
    TOO_SHORT: (_is_list, lambda argument: argument[:-1]),
}
