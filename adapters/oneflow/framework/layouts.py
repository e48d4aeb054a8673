"""The layouts of results: how OneFlow 0.9.0 spreads what it computes from global tensors.

A tensor has a layout for each dimension of its ranks; a result's layouts are found one dimension after the other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from collshim.oneflow.framework import signatures
from collshim.oneflow.framework.signatures import BROADCAST as BROADCAST
from collshim.oneflow.framework.signatures import PARTIAL as PARTIAL
from collshim.oneflow.framework.signatures import Axis, Operand, Signature, pick
from collshim.oneflow.framework.signatures import Layout as Layout

Shape = tuple[int, ...]
Layouts = tuple[Layout, ...]
"""A layout for each dimension of ranks."""

LOSSES = {
    *("cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "kl_div", "binary_cross_entropy"),
    "binary_cross_entropy_with_logits",
}
_OF_CLASSES = {"cross_entropy", "nll_loss"}
_SUMS = {"sum", "mean", "nansum"}
_REDUCTIONS = {"max", "min", "amax", "amin", "argmax", "argmin", "all", "any", "prod", "std", "var", "logsumexp"}
JOINS = {"cat", "concat", "stack"}
_MOVES = {
    *("transpose", "permute", "reshape", "view", "flatten", "unsqueeze", "squeeze", "expand", "t", "swapaxes"),
    *("T", "movedim", "flip", "roll", "repeat", "tile", "split", "chunk", "narrow", "__getitem__", "unbind", *JOINS),
}
_NEVER_OF_SUMS = {"squeeze", "flip", "unbind"}
FILLING = {"ones_like", "zeros_like", "full_like"}
REDUCING = _SUMS | _REDUCTIONS

_RULES: dict[str, Callable[[Sequence[signatures.Shape], signatures.Shape], list[Signature]]] = {
    **dict.fromkeys(("add", "__add__", "__radd__", "sub", "__sub__", "subtract"), signatures.additions),
    **dict.fromkeys(("mul", "__mul__", "__rmul__", "multiply"), signatures.multiplications),
    **dict.fromkeys(("div", "__truediv__", "true_divide", "divide"), signatures.divisions),
    **dict.fromkeys(("to", "type", "double", "float", "half", "bfloat16", "long", "int"), signatures.additions),
    **dict.fromkeys(("matmul", "__matmul__", "mm", "bmm"), signatures.products),
    **dict.fromkeys(FILLING, signatures.additions),
    **dict.fromkeys(("tril", "triu"), signatures.triangles),
    "diagonal": lambda shapes, result: [Signature((PARTIAL,), PARTIAL)],
    "one_hot": lambda shapes, result: signatures.rows(shapes, result, 1),
    "where": signatures.choices,
    "masked_select": lambda shapes, result: signatures.selections(len(shapes)),
    "layer_norm": lambda shapes, result: signatures.rows(shapes, result, len(shapes[1]) if len(shapes) > 1 else 1),
    "embedding": signatures.lookups,
    "batch_norm": lambda shapes, result: signatures.rows(shapes, result, len(result) - 1),
}
_ADDITIONS = {name for name in _RULES if "add" in name or "sub" in name}
ALONG = {**dict.fromkeys(("softmax", "log_softmax", "sort", "argsort", "cumsum"), 1), "topk": 2}
"""The functions that compute along one axis, with the place of this axis among their arguments."""
_OF_TWO = {name for name, rule in _RULES.items() if rule in (signatures.products, signatures.lookups)}


class Input(NamedTuple):
    """A global tensor among the arguments."""

    shape: tuple[int, ...]
    layouts: Layouts
    size: int


class Spread(NamedTuple):
    """How a result is spread, and, for each dimension of ranks, the signature that it is computed with."""

    layouts: Layouts
    taken: tuple[Signature, ...]


def sums(layouts: Layouts) -> list[int]:
    """Return the dimensions of ranks along which a tensor is a sum."""
    return [dim for dim, layout in enumerate(layouts) if layout == PARTIAL]


def cut(length: int, count: int) -> list[int]:
    """Return the lengths of ``count`` parts; if ``length`` is not divisible, the first parts are longer by one."""
    return [length // count + (index < length % count) for index in range(count)]


def infer(
    name: str,
    call: Callable[..., Any],
    found: Sequence[Input],
    result: torch.Tensor,
    hierarchy: Sequence[int],
    along: int | None = None,
) -> Spread:
    """Return how a result is spread.

    Args:
        name: the function's name.
        call: returns the function's result for other tensors instead of the global ones.
        found: the global tensors among the arguments, in order.
        result: the result.
        hierarchy: the number of ranks in each dimension.
        along: the axis along which one of the functions in ``ALONG`` computes.
    """
    if name in REDUCING | _MOVES:  # their other arguments matter too
        return _infer(name, found, tuple(result.shape), hierarchy, call)
    return _remembered(name, tuple(found), tuple(result.shape), tuple(hierarchy), None, along)


def _infer(
    name: str,
    found: Sequence[Input],
    shape: Shape,
    hierarchy: Sequence[int],
    call: Callable[..., Any] | None = None,
    along: int | None = None,
) -> Spread:
    rooms, room, taken = [list(one.shape) for one in found], list(shape), list[Signature]()
    for place, ranks in enumerate(hierarchy):
        each = zip(found, rooms, strict=True)
        operands = [Operand(one.shape, one.layouts[place], one.size, free) for one, free in each]
        axis = Axis(ranks, len(hierarchy) == 1, room)
        if all(one.layout == BROADCAST for one in operands):
            chosen = Signature((BROADCAST,) * len(operands), BROADCAST)
        elif call is None:
            chosen = _by_rule(name, operands, shape, axis, along)
        else:
            chosen = _movement_signature(name, call, operands, shape, axis)
        for layout, free in zip((*chosen.inputs, chosen.output), (*rooms, room), strict=True):
            if isinstance(layout, int):
                free[layout] //= ranks
        taken.append(chosen)
    return Spread(tuple(one.output for one in taken), tuple(taken))


_remembered = functools.lru_cache(maxsize=4096)(_infer)


def _by_rule(name: str, operands: Sequence[Operand], shape: Shape, axis: Axis, along: int | None) -> Signature:
    """Return the signature of a function that has rules, or of an elementwise function."""
    if name == "linear" and len(operands) > 1:
        return _linear_signature(operands, shape, axis)
    if name in LOSSES:
        return _loss_signature(name, operands, shape, axis)
    if name in ALONG and along is not None:
        return pick(signatures.beside(name, len(shape), along), operands, axis)
    rule = _RULES.get(name, signatures.elementwise)
    if (name in _OF_TWO and len(operands) != 2) or (name in _ADDITIONS and len(operands) < 2):
        rule = signatures.elementwise
    return pick(rule([one.shape for one in operands], shape), operands, axis)


def _linear_signature(operands: Sequence[Operand], shape: Shape, axis: Axis) -> Signature:
    """Return the signature of a matrix product, to which a bias may be added in place."""
    product = pick(signatures.transposed_products([one.shape for one in operands], shape), operands[:2], axis)
    splits_columns = product.output == len(shape) - 1
    added: Layout = PARTIAL if product.output == PARTIAL else 0 if splits_columns else BROADCAST
    return Signature((*product.inputs, *(added,) * (len(operands) - 2)), product.output)


def _loss_signature(name: str, operands: Sequence[Operand], shape: Shape, axis: Axis) -> Signature:
    """Return the signature of a loss: of each element or row, or of their mean or sum if the result is a number."""
    elements = operands[0].shape
    of_rows = elements[:-1] if name in _OF_CLASSES else elements
    each = Axis(axis.ranks, axis.alone, of_rows)
    if name in _OF_CLASSES:
        if name == "cross_entropy" and not shape:
            normal = pick(signatures.rows([elements], elements, 1), operands[:1], each)
            operands = [operands[0]._replace(layout=normal.output), *operands[1:]]
        chosen = pick(_row_signatures(operands, shape), operands, each)
    else:
        chosen = pick(signatures.elementwise([one.shape for one in operands], elements), operands, each)
    whole = not shape and isinstance(chosen.output, int)
    return Signature(chosen.inputs, PARTIAL) if whole else chosen


def _row_signatures(operands: Sequence[Operand], shape: Shape) -> list[Signature]:
    last, others = len(operands[0].shape) - 1, len(operands) - 1
    found = [Signature((axis,) * (others + 1), axis) for axis in range(last)]
    by_class = not shape or operands[0].layout == last
    return [*found, Signature((last, *(BROADCAST,) * others), PARTIAL)] if by_class else found


def _movement_signature(
    name: str, call: Callable[..., Any], operands: Sequence[Operand], shape: Shape, axis: Axis
) -> Signature:
    """Return the signature of a function that moves or reduces elements, from the owners of these elements."""
    others = (len(operands) - 1) if name in JOINS else 0
    rest = (BROADCAST,) * (len(operands) - 1 - others)

    def along(split: int) -> Signature | None:
        output = _moved(name, call, operands[0], split, shape, axis)
        return None if output is None else Signature((*(split,) * (1 + others), *rest), output)

    own = operands[0].layout
    if isinstance(own, int) and all(one.layout == own for one in operands):
        chosen = along(own)
        if chosen is not None:
            return chosen
    found = [along(split) for split in range(len(operands[0].shape))]
    possible = [one for one in found if one is not None]
    if name in (_SUMS | _MOVES) - _NEVER_OF_SUMS:
        possible.append(Signature((*(PARTIAL,) * (1 + others), *rest), PARTIAL))
    return pick(possible, operands, axis)


def _moved(name: str, call: Callable[..., Any], one: Operand, split: int, shape: Shape, axis: Axis) -> Layout | None:
    """Return the layout of a result whose input is split, or None if the result's elements have several owners."""
    if one.room[split] < axis.ranks:
        return None
    ranks = max(axis.ranks, 2)  # a single owner of all elements would not distinguish the axes
    owners = owners_of(one.shape, split, ranks)
    low, high = call(owners, torch.amin), call(owners, torch.amax)
    if low.shape == shape and torch.equal(low, high):
        for along in range(len(shape)):
            if axis.room[along] >= axis.ranks and torch.equal(low, owners_of(shape, along, ranks)):
                return along
    return PARTIAL if name in _SUMS or name in ("__getitem__", "narrow") else None


def owners_of(shape: tuple[int, ...], axis: int, ranks: int) -> torch.Tensor:
    """Return a tensor with, for each element, the position of the rank that holds it in a split along ``axis``."""
    counts = torch.tensor(cut(shape[axis], ranks))
    line = torch.repeat_interleave(torch.arange(ranks, dtype=torch.float32), counts)
    return line.reshape([-1 if place == axis else 1 for place in range(len(shape))]).expand(shape).contiguous()
