"""What a rank answers to a case, and what it should have answered: plain trees that travel between processes.

A tree's leaves are None, numbers, strings, arrays (``Seen`` in an answer, NumPy arrays or ``Shaped`` in what is
expected), ``Handle`` and ``Opaque``; its nodes are exact lists, tuples and dicts.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from numpy.typing import NDArray

from collshim.conformance.bindings.kinds import kind_of

Tree: TypeAlias = Any


@dataclass(frozen=True)
class Seen:
    """An array that a rank held: the name of its kind, and its values."""

    kind: str
    values: NDArray[Any]


@dataclass(frozen=True)
class Shaped:
    """An array that should be there, whose values say nothing."""

    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Handle:
    """The handle of an asynchronous call, after it was waited for: what ``wait()`` returned."""

    waited: Tree = None


@dataclass(frozen=True)
class Opaque:
    """Anything else: its type."""

    type: str


@dataclass(frozen=True)
class Answer:
    """What a rank held after a call that returned.

    Attributes:
        returned: what the call returned.
        arguments: the arguments that hold arrays, by parameter, as they were after the call.
        facts: of identity and memory, which values do not show: one sentence each, and whether it holds.
        stay: when the rank came to the call and when it left it, on the machine's clock; of barriers.
    """

    returned: Tree = None
    arguments: Mapping[str, Tree] = field(default_factory=dict)
    facts: Mapping[str, bool] = field(default_factory=dict)
    stay: tuple[float, float] | None = None


@dataclass(frozen=True)
class Failure:
    """What a rank raised: the names of its class and of that class's bases, its text, and its traceback."""

    classes: tuple[str, ...]
    message: str
    trace: str = ""

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """The failure that ``error`` is."""
        names = tuple(base.__name__ for base in type(error).__mro__)
        return cls(names, str(error), "".join(traceback.format_exception(error)))


@dataclass(frozen=True)
class Refusal:
    """What should be raised: a class, by name, and a pattern that the text matches (``re.search``)."""

    error: str
    match: str = ""


OUTSIDE = Answer()  # of a rank that is not in the case's group


def seen(tree: Tree) -> Tree:
    """``tree`` with its arrays read, and what cannot travel named by its type."""
    kind = kind_of(tree)
    if kind is not None:
        return Seen(kind.name, kind.read(tree))
    if isinstance(tree, Handle):
        return Handle(seen(tree.waited))
    if type(tree) in (list, tuple, dict):
        return _mapped(tree, seen)
    plain = tree is None or type(tree) in (bool, int, float, str, bytes)
    return tree if plain else Opaque(f"{type(tree).__module__}.{type(tree).__qualname__}")


def waited(tree: Tree) -> Tree:
    """``tree`` with every handle in it waited for."""
    if type(tree) in (list, tuple, dict):
        return _mapped(tree, waited)
    if kind_of(tree) is None and callable(getattr(tree, "wait", None)):
        return Handle(tree.wait())
    return tree


def leaves(tree: Tree) -> list[Tree]:
    """The leaves of ``tree``, in order; those of a handle are none."""
    if type(tree) is dict:
        tree = list(tree.values())
    return [leaf for item in tree for leaf in leaves(item)] if type(tree) in (list, tuple) else [tree]


def mapped(arrays: Tree, change: Callable[[Any], Tree]) -> Tree:
    """One array, or the arrays of a list, exchanged for something else; None stays."""
    if isinstance(arrays, list):
        return [mapped(array, change) for array in arrays]
    return None if arrays is None else change(arrays)


def _mapped(tree: Tree, change: Callable[[Tree], Tree]) -> Tree:
    if isinstance(tree, dict):
        return {key: change(value) for key, value in tree.items()}
    return type(tree)(change(item) for item in tree)
