"""The signatures of OneFlow's functions: for one dimension of ranks, the layouts of the inputs and the result.

A function can be computed without communication if its inputs have the layouts of one of its signatures. If they do
not, OneFlow first changes the layouts of some; ``pick`` chooses which, as OneFlow 0.9.0 does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

BROADCAST, PARTIAL = "broadcast", "partial_sum"
Layout = int | str
"""An axis along which a tensor is split, or one of the two words."""
Shape = Sequence[int]

_FORBIDDEN = 1e30


class Signature(NamedTuple):
    """The layouts that a function takes, one for each input, and its result's layout."""

    inputs: tuple[Layout, ...]
    output: Layout


class Operand(NamedTuple):
    """A global tensor among a function's arguments, on one dimension of ranks.

    Attributes:
        shape: its shape.
        layout: its layout.
        size: its bytes.
        room: the length along each axis that this dimension of ranks can still split.
    """

    shape: tuple[int, ...]
    layout: Layout
    size: int
    room: Shape


class Axis(NamedTuple):
    """One dimension of ranks: their number, whether it is the only dimension, and what it can split in the result."""

    ranks: int
    alone: bool
    room: Shape


def pick(signatures: Iterable[Signature], operands: Sequence[Operand], axis: Axis) -> Signature:
    """Return the signature that a function is computed with.

    It is the one that all inputs already have or, if ranks have one dimension, most inputs. Otherwise, or if several
    match, it is the one with the cheapest changes of layouts; then the first or, if ranks have several dimensions, the
    last. Every function can be computed on equal inputs.
    """
    equal = Signature((BROADCAST,) * len(operands), BROADCAST)
    possible = [*(one for one in signatures if _fits(one, operands, axis)), equal]

    def price(one: Signature) -> tuple[float, float]:
        pairs = list(zip(one.inputs, operands, strict=True))
        matching = sum(taken == operand.layout for taken, operand in pairs)
        cost = _cost_in_one_dimension if axis.alone else _cost
        return -matching if axis.alone else matching < len(pairs), sum(
            cost(operand, taken, axis.ranks) for taken, operand in pairs
        )

    return min(possible if axis.alone else reversed(possible), key=price)


def _fits(one: Signature, operands: Sequence[Operand], axis: Axis) -> bool:
    pairs = [
        (one.output, axis.room),
        *((taken, operand.room) for taken, operand in zip(one.inputs, operands, strict=True)),
    ]
    return all(not isinstance(layout, int) or room[layout] >= axis.ranks for layout, room in pairs)


def _cost_in_one_dimension(operand: Operand, taken: Layout, count: int) -> float:
    """Return the cost of a change of layout if ranks have one dimension."""
    if operand.layout == taken:
        return 0
    return _FORBIDDEN if operand.layout == BROADCAST or taken == PARTIAL else operand.size


def _cost(operand: Operand, taken: Layout, count: int) -> float:
    """Return the cost of a change of layout if ranks have several dimensions."""
    if operand.layout == taken:
        return 0
    if taken == PARTIAL:
        return _FORBIDDEN
    if operand.layout == BROADCAST:
        return 1
    if isinstance(taken, int):
        return operand.size * (count - 1) / (count if isinstance(operand.layout, int) else 1)
    return operand.size * (count - 1) * (2 if operand.layout == PARTIAL else 1)


def elementwise(shapes: Sequence[Shape], result: Shape) -> list[Signature]:
    """Return the signatures of an elementwise function: all inputs split alike, shorter and repeated ones equal."""
    found = []
    for axis, length in enumerate(result):
        own = [axis - len(result) + len(shape) for shape in shapes]
        inputs = [
            place if place >= 0 and shape[place] == length else BROADCAST
            for place, shape in zip(own, shapes, strict=True)
        ]
        if any(isinstance(each, int) for each in inputs):
            found.append(Signature(tuple(inputs), axis))
    return found


def additions(shapes: Sequence[Shape], result: Shape) -> list[Signature]:
    """Return the signatures of sums and differences of tensors: a sum of parts if all inputs are."""
    return [*elementwise(shapes, result), Signature((PARTIAL,) * len(shapes), PARTIAL)]


def multiplications(shapes: Sequence[Shape], result: Shape) -> list[Signature]:
    """Return the signatures of products: a sum of parts if one factor is."""
    return [*elementwise(shapes, result), *_one_input_summed(len(shapes))]


def divisions(shapes: Sequence[Shape], result: Shape) -> list[Signature]:
    """Return the signatures of quotients: a sum of parts if the numerator is."""
    return [*elementwise(shapes, result), *_one_input_summed(len(shapes))[:1]]


def _one_input_summed(count: int) -> list[Signature]:
    return [
        Signature(tuple(PARTIAL if place == index else BROADCAST for place in range(count)), PARTIAL)
        for index in range(count)
    ]


def products(shapes: Sequence[Shape], result: Shape) -> list[Signature]:
    """Return the signatures of matrix products, (..., m, k) with (..., k, n)."""
    left, right = (len(shape) for shape in shapes)
    if min(left, right) < 2:
        return _one_input_summed(2)
    batches = [
        one for one in elementwise(shapes, result) if isinstance(one.output, int) and one.output < len(result) - 2
    ]
    return [
        *batches,
        Signature((left - 2, BROADCAST), len(result) - 2),
        Signature((BROADCAST, right - 1), len(result) - 1),
        Signature((left - 1, right - 2), PARTIAL),
        *_one_input_summed(2),
    ]


def transposed_products(shapes: Sequence[Shape], result: Shape) -> list[Signature]:
    """Return the signatures of the product of (..., k) with the transpose of (n, k)."""
    last = len(shapes[0]) - 1
    return [
        *(Signature((axis, BROADCAST), axis) for axis in range(last)),
        Signature((BROADCAST, 0), last),
        Signature((last, 1), PARTIAL),
        *_one_input_summed(2),
    ]


def rows(shapes: Sequence[Shape], result: Shape, fixed: int) -> list[Signature]:
    """Return the signatures of a function of the last ``fixed`` axes, such as a softmax; other inputs are equal."""
    others = (BROADCAST,) * (len(shapes) - 1)
    return [Signature((axis, *others), axis) for axis in range(len(result) - fixed)]


def beside(name: str, dims: int, along: int) -> list[Signature]:
    """Return the signatures of a function along one axis: split along another, for ``cumsum`` only along a later one.

    OneFlow exchanges the axis of a softmax with the last one, so that the last one is split first.
    """
    along %= max(dims, 1)
    axes = list(range(along + 1 if name == "cumsum" else 0, dims))
    if name.endswith("softmax"):
        axes[along], axes[-1] = axes[-1], axes[along]
    return [Signature((axis,), axis) for axis in axes if axis != along]


def triangles(shapes: Sequence[Shape], result: Shape) -> list[Signature]:
    """Return the signatures of a function of matrices: split along an axis before their two, or a sum of parts."""
    return [*rows(shapes, result, 2), Signature((PARTIAL,), PARTIAL)]


def choices(shapes: Sequence[Shape], result: Shape) -> list[Signature]:
    """Return the signatures of ``where``: all inputs split, or a sum of parts if shapes and condition are equal."""
    split = [one for one in elementwise(shapes, result) if BROADCAST not in one.inputs]
    alike = all(tuple(shape) == tuple(result) for shape in shapes)
    return [*split, *([Signature((BROADCAST, *(PARTIAL,) * (len(shapes) - 1)), PARTIAL)] if alike else [])]


def selections(count: int) -> list[Signature]:
    """Return the signature of the elements at which a mask is true: a sum of parts if the mask is equal."""
    return [Signature((PARTIAL, *(BROADCAST,) * (count - 1)), PARTIAL)]


def lookups(shapes: Sequence[Shape], result: Shape) -> list[Signature]:
    """Return the signatures of the rows of a table, the second input, at indices."""
    indices, table = (len(shape) for shape in shapes)
    return [
        *(Signature((axis, BROADCAST), axis) for axis in range(indices)),
        *(Signature((BROADCAST, axis), indices + axis - 1) for axis in range(1, table)),
        Signature((BROADCAST, 0), PARTIAL),
        Signature((BROADCAST, PARTIAL), PARTIAL),
    ]
