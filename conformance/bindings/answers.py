"""The answer of a rank to a case, and the expected answer: plain trees that are sent between processes.

A tree's leaves are None, numbers, strings, arrays (``Seen`` in an answer; NumPy arrays or ``Shaped`` in an expected
answer), ``Handle`` and ``Opaque``. Its nodes are exact lists, tuples and dicts.
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
    """An expected array whose values are arbitrary."""

    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Handle:
    """The handle of an asynchronous call after a wait: the value that ``wait()`` returned."""

    waited: Tree = None


@dataclass(frozen=True)
class Opaque:
    """Any other object: its type."""

    type: str


@dataclass(frozen=True)
class Answer:
    """The state of a rank after a call that returned.

    Attributes:
        returned: the value that the call returned.
        arguments: the arguments that hold arrays, by parameter, after the call.
        facts: statements about identity and memory, which values do not show, and whether each holds.
        stay: when the rank entered the call and when it left it, on the machine's clock; for barriers.
    """

    returned: Tree = None
    arguments: Mapping[str, Tree] = field(default_factory=dict)
    facts: Mapping[str, bool] = field(default_factory=dict)
    stay: tuple[float, float] | None = None


@dataclass(frozen=True)
class Failure:
    """An exception on a rank: the names of its class and of that class's bases, its text, and its traceback."""

    classes: tuple[str, ...]
    message: str
    trace: str = ""

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Return ``error`` as a failure."""
        names = tuple(base.__name__ for base in type(error).__mro__)
        return cls(names, str(error), "".join(traceback.format_exception(error)))


@dataclass(frozen=True)
class Refusal:
    """An expected exception: the name of its class, and a pattern that the text matches (``re.search``)."""

    error: str
    match: str = ""


OUTSIDE = Answer()  # the answer of a rank outside the case's group


def seen(tree: Tree) -> Tree:
    """Read the arrays in ``tree``, and replace other objects that cannot be sent by their types."""
    kind = kind_of(tree)
    if kind is not None:
        return Seen(kind.name, kind.read(tree))
    if isinstance(tree, Handle):
        return Handle(seen(tree.waited))
    if type(tree) in (list, tuple, dict):
        return _map(tree, seen)
    plain = tree is None or type(tree) in (bool, int, float, str, bytes)
    return tree if plain else Opaque(f"{type(tree).__module__}.{type(tree).__qualname__}")


def waited(tree: Tree) -> Tree:
    """Wait for every handle in ``tree``."""
    if type(tree) in (list, tuple, dict):
        return _map(tree, waited)
    if kind_of(tree) is None and callable(getattr(tree, "wait", None)):
        return Handle(tree.wait())
    return tree


def leaves(tree: Tree) -> list[Tree]:
    """Return the leaves of ``tree`` in order, without looking into handles."""
    if type(tree) is dict:
        tree = list(tree.values())
    return [leaf for item in tree for leaf in leaves(item)] if type(tree) in (list, tuple) else [tree]


def mapped(arrays: Tree, change: Callable[[Any], Tree]) -> Tree:
    """Apply ``change`` to one array, or to the arrays of a list; None is unchanged."""
    if isinstance(arrays, list):
        return [mapped(array, change) for array in arrays]
    return None if arrays is None else change(arrays)


def _map(tree: Tree, change: Callable[[Tree], Tree]) -> Tree:
    if isinstance(tree, dict):
        return {key: change(value) for key, value in tree.items()}
    return type(tree)(change(item) for item in tree)
