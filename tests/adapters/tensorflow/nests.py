"""Nests, calls of ``tf.nest`` on them, and their outcomes: in TensorFlow, dm-tree and the adapter.

The file itself needs NumPy and the framework: ``python nests.py tensorflow`` or ``python nests.py dm-tree`` prints a
line for each call. ``nests.txt`` has the output of TensorFlow 2.21.0 and, in lines with ``dm-tree``, the different
output of dm-tree 0.1.10.
"""

from __future__ import annotations

import importlib
import sys
from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np

Pair = namedtuple("Pair", "x y")
Other = namedtuple("Other", "x y")


class Numbers(list[Any]):
    """A subclass of list."""


class Places(tuple[Any, ...]):
    """A subclass of tuple."""


class Named(dict[Any, Any]):
    """A subclass of dict."""


class Custom(Mapping[Any, Any]):
    """A mapping that is not a dict."""

    def __init__(self, items: Mapping[Any, Any]) -> None:
        self._items = dict(items)

    def __getitem__(self, key: Any) -> Any:
        return self._items[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)


class Attributes:
    """What nests need of a class made by the attrs package."""

    __attrs_attrs__ = (SimpleNamespace(name="x"), SimpleNamespace(name="y"))

    def __init__(self, x: Any, y: Any) -> None:
        self.x, self.y = x, y

    def __repr__(self) -> str:
        return f"Attributes({self.x!r}, {self.y!r})"


MIXED: dict[Any, Any] = {"a": 1, 2: 3}
NESTS: dict[str, Any] = {
    "number": 1,
    "None": None,
    "text": "ab",
    "bytes": b"ab",
    "bytearray": bytearray(b"ab"),
    "set": {1},
    "array": np.arange(2),
    "no list": [],
    "no tuple": (),
    "no dict": {},
    "empty": [[], (), {}],
    "list": [1, 2],
    "tuple": (1, 2),
    "deep": [1, (2, [3, {"b": 4, "a": 5}])],
    "dict": {"b": 1, "a": 2},
    "numbered": {2: 1, 1: 2},
    "mixed": MIXED,
    "ordered": OrderedDict([("b", 1), ("a", 2)]),
    "default": defaultdict(list, {"b": 1, "a": 2}),
    "pair": Pair(1, [2]),
    "other": Other(1, (2,)),
    "pairs": Pair(Pair(1, 2), Other(3, 4)),
    "Numbers": Numbers([1, 2]),
    "Places": Places((1, 2)),
    "Named": Named(b=1, a=2),
    "Custom": Custom({"b": 1, "a": 2}),
    "proxy": MappingProxyType({"b": 1, "a": 2}),
    "Attributes": Attributes(1, [2]),
    "deque": deque([1, 2]),
    "counter": Counter("aab"),
    "range": range(2),
    "values": {"a": 1}.values(),
    "keys": {"a": 1}.keys(),
    "items": {"a": 1}.items(),
    "chain": ChainMap({"a": 1}, {"b": 2}),
    "UserDict": UserDict({"b": 1, "a": 2}),
    "UserList": UserList([1, 2]),
    "object": SimpleNamespace(a=1),
}
PAIRS = {
    "list": ("tuple", "Numbers", "dict", "number", "no list"),
    "Numbers": ("list",),
    "tuple": ("Places", "pair", "values"),
    "dict": ("ordered", "default", "Named", "Custom", "proxy", "UserDict", "numbered", "list", "no dict"),
    "ordered": ("default",),
    "pair": ("other", "tuple"),
    "other": ("pair",),
    "pairs": ("pair",),
    "number": ("list", "text"),
    "None": ("number", "list"),
    "text": ("list",),
    "deep": ("list", "deep"),
    "Attributes": ("Attributes", "pair", "list"),
    "deque": ("list",),
    "values": ("list",),
    "no tuple": ("no list",),
    "empty": ("empty", "no list"),
}


def _shown(value: Any) -> str:
    """Return the text of a result with the classes of all its structures."""
    kind = type(value).__name__
    if isinstance(value, Mapping):
        return f"{kind}({', '.join(f'{key!r}: {_shown(value[key])}' for key in value)})"
    if isinstance(value, list | tuple | deque | UserList):
        return f"{kind}({', '.join(map(_shown, value))})"
    return repr(value)


def _outcome(call: Callable[[], Any]) -> str:
    try:
        return _shown(call())
    except Exception as error:
        return f"raises {type(error).__name__.removeprefix('Argument')}"


def _of_one(nest: Any, given: Any) -> Iterator[tuple[str, str]]:
    yield "is_nested", _outcome(lambda: nest.is_nested(given))
    yield "flatten", _outcome(lambda: nest.flatten(given))
    yield "map_structure", _outcome(lambda: nest.map_structure(lambda leaf: f"{leaf!r}+", given))
    try:
        leaves = len(nest.flatten(given))
    except TypeError:
        leaves = 2
    for count in (leaves - 1, leaves, leaves + 1):
        if count >= 0:
            values = [f"v{place}" for place in range(count)]
            yield f"pack {count} of {leaves}", _outcome(lambda: nest.pack_sequence_as(given, values))  # noqa: B023


def _of_two(nest: Any, one: Any, two: Any) -> Iterator[tuple[str, str]]:
    for check in (True, False):
        yield (
            f"assert_same_structure {check}",
            _outcome(lambda: nest.assert_same_structure(one, two, check_types=check)),  # noqa: B023
        )
        yield (
            f"map_structure {check}",
            _outcome(lambda: nest.map_structure(lambda a, b: f"{a!r}{b!r}", one, two, check_types=check)),  # noqa: B023
        )


def outcomes(nest: Any) -> dict[str, str]:
    """Return the outcome of each call on the module ``nest``."""
    found: dict[str, str] = {}
    for name, given in NESTS.items():
        found |= {f"{call}: {name}": outcome for call, outcome in _of_one(nest, given)}
    for name, others in PAIRS.items():
        for other in others:
            pairs = _of_two(nest, NESTS[name], NESTS[other])
            found |= {f"{call}: {name}, {other}": outcome for call, outcome in pairs}
    packed: dict[str, Any] = {
        "tuple": (1, 2),
        "number": 5,
        "text": "ab",
        "array": np.array([1, 2]),
        "nests": [[1], [2]],
    }
    for name, flat in packed.items():
        found[f"pack of a list from: {name}"] = _outcome(lambda: nest.pack_sequence_as([0, 0], flat))  # noqa: B023
    return found


def main(framework: str) -> None:
    """Print the outcome of each call."""
    if framework == "dm-tree":
        nest = importlib.import_module("tree")
        nest.pack_sequence_as = nest.unflatten_as  # type: ignore[attr-defined]
    else:
        nest = importlib.import_module(framework).nest
    for call, outcome in outcomes(nest).items():
        print(f"{call} -> {outcome}")


if __name__ == "__main__":
    main(sys.argv[1])
