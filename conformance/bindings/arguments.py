"""The arguments for a spelling's parameters, by their roles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from collshim.conformance import reference
from collshim.conformance.bindings.answers import Tree
from collshim.conformance.bindings.binding import Framework, blank_values
from collshim.conformance.bindings.rank_context import RankContext

Arrangement: TypeAlias = Literal["list", "joined", "stacked", "flat"]
"""The form of one part per rank: a list, or one array with the parts along an axis, on a new axis 0, or flattened."""


class Asker(NamedTuple):
    """The rank that calls, as its ``rank`` in the group of a case; ``group`` is in the framework's terms."""

    context: RankContext
    framework: Framework
    case: Any
    rank: int
    group: Any


class Invocation(NamedTuple):
    """A call: the function and its arguments."""

    function: Any
    positional: tuple[Any, ...]
    keywords: Mapping[str, Any]
    asker: Asker


def role_of(role: str) -> str:
    """Return the role without the ranks that it applies to."""
    return role.partition("@")[0]


def is_array(role: str) -> bool:
    """Return whether the role is that of an array."""
    return role_of(role) not in _VALUES


def value_of(role: str, asker: Asker) -> Any:
    """Return the value for a role that is not an array's; ``LEFT_OUT`` if the parameter is omitted."""
    return _VALUES[role_of(role)](asker)


LEFT_OUT = object()


def values_by_name(takes: Mapping[str, str], asker: Asker) -> dict[str, Any]:
    """Return the values of the parameters that are not arrays, by name, without omitted ones."""
    values = {name: value_of(role, asker) for name, role in takes.items()}
    return {name: value for name, value in values.items() if value is not LEFT_OUT}


def _op(asker: Asker) -> Any:
    return asker.framework.op(asker.context, asker.case.reduce_op)


def _group(asker: Asker) -> Any:
    return LEFT_OUT if asker.group is None else asker.group


def _rows_from_each(asker: Asker) -> list[int]:
    return [asker.case.part_shape(sender, asker.rank)[0] for sender in range(len(asker.case.ranks))]


def _rows_to_each(asker: Asker) -> list[int]:
    return [asker.case.part_shape(asker.rank, receiver)[0] for receiver in range(len(asker.case.ranks))]


def _if_unequal(rows: Callable[[Asker], list[int]]) -> Callable[[Asker], Any]:
    return lambda asker: LEFT_OUT if asker.case.lengths is None else rows(asker)


def _counts(asker: Asker) -> list[int]:
    ranks = range(len(asker.case.ranks))
    return [int(np.prod(asker.case.part_shape(sender, receiver))) for sender in ranks for receiver in ranks]


def _shapes(asker: Asker) -> list[tuple[int, ...]]:
    return [asker.case.part_shape(sender, asker.rank) for sender in range(len(asker.case.ranks))]


def _whole_shape(asker: Asker) -> tuple[int, ...]:
    shapes = _shapes(asker)
    return (sum(shape[0] for shape in shapes), *shapes[0][1:])


_VALUES: dict[str, Callable[[Asker], Any]] = {
    **dict.fromkeys(("root", "optional root", "ignored root"), lambda asker: asker.case.root_rank),
    "root in the group": lambda asker: asker.case.root,
    **dict.fromkeys(("ReduceOp", "engine's op", "MindSpore's op", "mint's op", "TensorFlow's op"), _op),
    **dict.fromkeys(("group", "optional group"), _group),
    **dict.fromkeys(("axis", "axis of either sign"), lambda asker: asker.case.axis),
    **dict.fromkeys(("axis to cut", "axis to cut, of either sign"), lambda asker: asker.case.split_axis),
    "rows from each": _rows_from_each,
    "rows to each": _rows_to_each,
    "optional rows from each": _if_unequal(_rows_from_each),
    "optional rows to each": _if_unequal(_rows_to_each),
    "counts": _counts,
    "shapes": _shapes,
    "whole shape": _whole_shape,
    "size of the group": lambda asker: len(asker.case.ranks),
    **dict.fromkeys(("MegEngine's device", "options"), lambda asker: LEFT_OUT),
}


ROLES = frozenset(
    [
        *_VALUES,
        *("array", "array of whole", "array to divide", "inout", "out", "rebound", "written but None", "buffer"),
        *("list of parts", "exact list of parts", "exact list of equal parts", "list of buffers"),
        *(
            "list of outs",
            "longer list of outs",
            "exact list of outs",
            "exact list of places",
            "filled list",
            "optional filled list",
        ),
        *("list of inouts", "lists of outs", "nest", "nest to reduce", "nest to gather", "nest of arrays with axes"),
    ]
)
"""All roles; arrays' roles differ in how a function uses and refuses the arrays (``tests/robustness/roles.py``)."""


def arrange(parts: Sequence[Any], arrangement: Arrangement, axis: int = 0) -> Tree:
    """Arrange one part per rank, as NumPy arrays; 0-d parts are joined to ``(size,)``."""
    if arrangement == "list":
        return list(parts)
    if arrangement == "stacked":
        return reference.stacked(parts)
    if arrangement == "flat":
        return reference.concatenated([part.ravel() for part in parts])
    return reference.concatenated(parts, axis)


def blanks(collective: str, case: Any, rank: int) -> Any:
    """Return blank values for the result of a rank of the group: one array, or one per rank."""
    ranks = range(len(case.ranks))
    if collective == "scatter":
        return blank_values(case, case.part_shape(case.root, rank))
    if collective == "reduce_scatter":
        return blank_values(case, case.part_shape(rank, rank))
    if collective == "all_to_all":
        return [blank_values(case, case.part_shape(sender, rank)) for sender in ranks]
    if collective in ("all_gather", "gather"):
        return [blank_values(case, case.part_shape(sender)) for sender in ranks]
    return blank_values(case, case.shape)
