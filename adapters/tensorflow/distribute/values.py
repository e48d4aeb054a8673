"""Values that have one component per replica, and conversions between them and the replicas' results.

Source: TensorFlow 2.21, recorded results of ``Strategy.run`` and ``experimental_distribute_values_from_function``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from collshim.errors import ArgumentError, ArgumentIndexError, ArgumentValueError, CollshimError, also
from collshim.tensorflow import structures


class DistributedValues:
    """One value per replica of this process.

    Attributes:
        values: the components, in replica order.
    """

    _values: tuple[Any, ...] = ()

    @property
    def values(self) -> tuple[Any, ...]:
        """The components, in replica order."""
        return self._values

    def _is_mirrored(self) -> bool:
        """Return whether the components are kept equal on all replicas."""
        return False

    def __str__(self) -> str:
        return self._shown(str)

    def __repr__(self) -> str:
        return self._shown(repr)

    def _shown(self, show: Any) -> str:
        lines = ",\n".join(f"  {index}: {show(value)}" for index, value in enumerate(self._values))
        return f"{type(self).__name__}:{{\n{lines}\n}}"


class Components(DistributedValues):
    """Distributed values made of their components, in replica order."""

    def __init__(self, values: Iterable[Any]) -> None:
        self._values = tuple(values)

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> Any:
        """Refuse to be converted to one tensor.

        Raises:
            ValueError: always.
        """
        raise ArgumentValueError(
            f"It looks like you are using a {type(self).__name__} object while not inside a replica context, which is "
            "not supported. Try running your op or function inside a replica context by using `strategy.run`"
        )


class PerReplica(Components):
    """Components that may differ between replicas."""


class Mirrored(Components):
    """Components that are equal on all replicas, such as the results of ``extended.reduce_to``."""

    def _is_mirrored(self) -> bool:
        return True


def regroup(values: Sequence[Any], wrap: type[Components] = PerReplica, always_wrap: bool = False) -> Any:
    """Turn one structure per replica into one structure with a ``wrap`` of components at each leaf.

    A leaf that is the same object on all replicas stays unchanged, unless ``always_wrap``. Subclasses of list and tuple
    become list and tuple; named tuples and mappings keep their class.

    Raises:
        AssertionError: the replicas' structures differ.
    """
    first = values[0]
    if isinstance(first, Mapping):
        _require_same_keys(values)
        columns = {key: [value[key] for value in values] for key in first}
        return structures.mapping_like(
            first, {key: regroup(column, wrap, always_wrap) for key, column in columns.items()}
        )
    if isinstance(first, list | tuple) and structures.is_nested(first):
        _require_same_length(values)
        return _plain_like(first, [regroup(column, wrap, always_wrap) for column in zip(*values, strict=True)])
    if not always_wrap and all(value is first for value in values):
        return first
    return wrap(values)


def select(index: int, structure: Any) -> Any:
    """Return ``structure`` as the ``index``-th replica here sees it: its component of every distributed leaf.

    A variable is kept whole, because it knows from where it is read and written.
    """
    return structures.map_structure(lambda leaf: leaf if hasattr(leaf, "assign") else component(leaf, index), structure)


def component(value: Any, index: int) -> Any:
    """Return the ``index``-th component of a distributed value; any other value is unchanged.

    Raises:
        ArgumentIndexError: the value was made for fewer replicas.
    """
    if not isinstance(value, DistributedValues):
        return value
    if index >= len(value.values):
        raise ArgumentIndexError(
            f"{type(value).__name__} has {len(value.values)} components, should have one for each of the replicas "
            f"(replica {index} found none)"
        )
    return value.values[index]


def _plain_like(structure: Any, children: list[Any]) -> Any:
    if structures.is_proxy(structure):
        return structures.like(structure, children)
    if isinstance(structure, list):
        return children
    return structures.like(structure, children) if hasattr(structure, "_fields") else tuple(children)


def _require_same_keys(values: Sequence[Any]) -> None:
    first = values[0]
    for value in values[1:]:
        if not isinstance(value, Mapping) or set(value) != set(first):
            raise _differs(f"v[0].keys: {_keys(first)}  v[i].keys: {_keys(value)}")


def _require_same_length(values: Sequence[Any]) -> None:
    first = values[0]
    for value in values[1:]:
        if type(value) is not type(first):
            raise _differs(f"v[0] is a {type(first).__name__}, v[i] is a {type(value).__name__}: {value}")
        if len(value) != len(first):
            raise _differs(f"len(v) == {len(value)}, len(v0) == {len(first)}, v: {value}, v0: {first}")


def _keys(value: Any) -> Any:
    return set(value) if isinstance(value, Mapping) else value


def _differs(text: str) -> CollshimError:
    return also(ArgumentError, AssertionError)(text)
