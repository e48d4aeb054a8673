"""Checks of arguments, whose errors have the types and the wording of MindSpore 2.10.0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from collshim.adapting.refusing import refuse

__all__ = [
    "check_bool",
    "check_float",
    "check_in",
    "check_int",
    "check_type",
    "check_value_type",
    "is_number",
    "pair_of_ints",
]


def _kind(value: Any) -> str:
    return type(value).__name__


def is_number(value: Any, *kinds: type) -> bool:
    """Return whether the value has one of these types; a bool does not count as an int."""
    return isinstance(value, kinds) and not isinstance(value, bool)


def check_int(value: Any, name: str, of: str, *, least: int | None = None) -> int:
    """Return ``value``, an int that is at least ``least``.

    Raises:
        TypeError: the value is not an int.
        ValueError: the value is less than ``least``.
    """
    if not is_number(value, int):
        refuse(TypeError, f"For '{of}', the type of '{name}' must be 'int', but got type '{_kind(value)}' of {value!r}")
    if least is not None and value < least:
        refuse(ValueError, f"For '{of}', the '{name}' must be int and must be >= {least}, but got '{value}'")
    return int(value)


def check_float(value: Any, name: str, of: str, low: float, high: float = float("inf"), ends: str = "[]") -> float:
    """Return ``value``, a float from ``low`` to ``high``; ``ends`` describes which ends are included, as in "(]".

    Raises:
        TypeError: the value is not a float.
        ValueError: the value is out of range.
    """
    if not isinstance(value, float):
        refuse(
            TypeError, f"For '{of}', the type of '{name}' must be 'float', but got type '{_kind(value)}' of {value!r}"
        )
    above = value > low if ends[0] == "(" else value >= low
    below = value < high if ends[1] == ")" else value <= high
    if not above or not below:
        text = f"must be in range of {ends[0]}{low}, {high}{ends[1]}"
        refuse(ValueError, f"For '{of}', the '{name}' {text}, but got {value} with type 'float'")
    return value


def check_bool(value: Any, name: str, of: str) -> bool:
    """Return ``value``, a bool.

    Raises:
        TypeError: the value is not a bool.
    """
    if not isinstance(value, bool):
        refuse(TypeError, f"For '{of}', the '{name}' must be a bool, but got '{value}' with type '{_kind(value)}'")
    return value


def check_type(value: Any, name: str, of: str, *kinds: type) -> Any:
    """Return ``value``, which has one of these types; a bool does not count as an int.

    Raises:
        TypeError: the value has a different type.
    """
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        named = "', '".join(kind.__name__ for kind in kinds)
        text = f"must be '{named}'" if len(kinds) == 1 else f"must be one of ('{named}')"
        refuse(TypeError, f"For '{of}', the type of '{name}' {text}, but got type '{_kind(value)}' of {value!r}")
    return value


def check_in(value: Any, name: str, of: str, choices: Sequence[Any]) -> Any:
    """Return ``value``, one of the choices.

    Raises:
        ValueError: the value is not one of the choices.
    """
    if value not in choices:
        refuse(ValueError, f"For '{of}', the '{name}' must be in {list(choices)}, but got {value!r}")
    return value


def pair_of_ints(value: Any, name: str, of: str, least: int = 1) -> tuple[int, int]:
    """Return an int twice, or the two ints of a tuple, each at least ``least``.

    Raises:
        TypeError: the value is neither an int nor a tuple of ints.
        ValueError: an int is less than ``least``, or the tuple does not have two.
    """
    if not isinstance(value, tuple | list):
        number = check_int(value, name, of, least=least)
        return number, number
    if len(value) != 2:
        refuse(ValueError, f"For '{of}', the length of '{name}' must be 2, but got {len(value)}: {value}")
    return check_int(value[0], name, of, least=least), check_int(value[1], name, of, least=least)


def check_value_type(arg_name: str, arg_value: Any, valid_types: Any, prim_name: str | None = None) -> Any:
    """Return ``arg_value``, which has one of these types; a bool only if bool is one of them.

    Raises:
        TypeError: the value has a different type.
    """
    kinds = tuple(valid_types) if isinstance(valid_types, list | tuple) else (valid_types,)
    if not isinstance(arg_value, kinds) or (isinstance(arg_value, bool) and bool not in kinds):
        names = [kind.__name__ for kind in kinds]
        wanted = f"one of '{names}'" if len(names) > 1 else f"'{names[0]}'"
        start = f"For '{prim_name}', the" if prim_name else "The"
        refuse(TypeError, f"{start} type of '{arg_name}' should be {wanted}, but got type '{_kind(arg_value)}'.")
    return arg_value
