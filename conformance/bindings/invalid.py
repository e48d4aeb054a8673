"""Calls that are wrong in one respect, alike on every rank, made from right ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from collshim.conformance.bindings.answers import Tree
from collshim.conformance.bindings.kinds import kind_of

NO_ARRAY = "a number for an array"
TUPLE = "a tuple for a list"
TOO_SHORT = "a list without its last array"


def invalidated(fault: str, arguments: tuple[Tree, ...]) -> tuple[Tree, ...]:
    """``arguments`` with the fault in the last of them that it can be in; a case's ``fault`` is "" for none."""
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
