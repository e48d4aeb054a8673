"""The layouts of results: how OneFlow 0.9.0 spreads what it computes from global tensors of one dimension of ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

BROADCAST, PARTIAL = "broadcast", "partial_sum"
Layout = int | str
"""An axis along which a tensor is split, or one of the two words."""

_ADDITIONS = {"add", "__add__", "__radd__"}
_LOSSES = {
    *("cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "kl_div", "binary_cross_entropy"),
    "binary_cross_entropy_with_logits",
}
_OF_INDICES = {"embedding", "one_hot"}
_PRODUCTS = {"mul", "__mul__", "__rmul__", "multiply", "div", "__truediv__"}
_MATRICES = {"matmul", "__matmul__", "mm"}
_SUMS = {"sum", "mean", "nansum"}
_REDUCTIONS = {"max", "min", "amax", "amin", "argmax", "argmin", "all", "any", "prod", "std", "var", "logsumexp"}
_MOVES = {
    *("transpose", "permute", "reshape", "view", "flatten", "unsqueeze", "squeeze", "expand", "t", "swapaxes"),
    *(
        "movedim",
        "flip",
        "roll",
        "repeat",
        "stack",
        "cat",
        "concat",
        "split",
        "chunk",
        "narrow",
        "__getitem__",
        "unbind",
    ),
}
REDUCING = _SUMS | _REDUCTIONS
_NORMALIZED = {"softmax", "log_softmax"}


class Input(NamedTuple):
    """A global tensor among the arguments."""

    shape: tuple[int, ...]
    layout: Layout


def cut(length: int, count: int) -> list[int]:
    """Return the lengths of ``count`` parts: the first ones are longer by one if it cannot be divided."""
    return [length // count + (index < length % count) for index in range(count)]


def infer(name: str, call: Callable[..., Any], found: Sequence[Input], result: torch.Tensor, ranks: int) -> Layout:
    """Return the layout of a result.

    Args:
        name: the function's name.
        call: returns the function's result for other tensors in place of the global ones.
        found: the global tensors among the arguments, in order.
        result: the result.
        ranks: the number of ranks.
    """
    layouts = [one.layout for one in found]
    if all(layout == BROADCAST for layout in layouts):
        return BROADCAST
    if name in _MATRICES and len(found) == 2:
        return _of_product(layouts[0], layouts[1])
    if name == "linear":
        return _of_linear(found, result)
    if name in REDUCING | _MOVES:
        return _of_movement(name, call, found[0], result, ranks)
    if name in _NORMALIZED:
        return _first_axis(result)
    if name in _LOSSES and not result.dim():
        return PARTIAL
    if name in _OF_INDICES:
        return next((layout for layout in layouts if isinstance(layout, int)), BROADCAST)
    if PARTIAL in layouts:
        return _of_parts(name, found, result)
    if BROADCAST in layouts and len({one.shape for one in found}) == 1:
        return BROADCAST
    axes = [_aligned(one, result) for one in found]
    split = [axis for axis in axes if axis is not None]
    return min(split) if split else _first_axis(result)


def _of_product(left: Layout, right: Layout) -> Layout:
    if PARTIAL in (left, right):
        return PARTIAL
    if left == 0:
        return 0
    if right == 1:
        return 1
    return 0 if right == BROADCAST else PARTIAL


def _of_linear(found: Sequence[Input], result: torch.Tensor) -> Layout:
    layout = found[0].layout
    if isinstance(layout, int) and layout < result.dim() - 1:
        return layout
    return result.dim() - 1 if layout == BROADCAST and found[1].layout == 0 else 0


def _of_parts(name: str, found: Sequence[Input], result: torch.Tensor) -> Layout:
    layouts = [one.layout for one in found]
    alike = len({one.shape for one in found}) == 1
    if name in _ADDITIONS and len(layouts) > 1 and alike:
        split = [layout for layout in layouts if isinstance(layout, int)]
        return split[0] if split else BROADCAST if BROADCAST in layouts else PARTIAL
    if name in _PRODUCTS and len(layouts) == 1:
        return PARTIAL
    return _first_axis(result)


def _first_axis(result: torch.Tensor) -> Layout:
    return 0 if result.dim() else BROADCAST


def _aligned(one: Input, result: torch.Tensor) -> int | None:
    """Return the axis of the result that an input's split axis becomes."""
    if not isinstance(one.layout, int) or one.shape[one.layout] == 1:
        return None
    axis = one.layout + result.dim() - len(one.shape)
    return axis if 0 <= axis < result.dim() and result.shape[axis] == one.shape[one.layout] else None


def _of_movement(name: str, call: Callable[..., Any], one: Input, result: torch.Tensor, ranks: int) -> Layout:
    """Return the layout of elements that moved, or were reduced: by the owners of the elements that they come from."""
    if one.layout == PARTIAL:
        return PARTIAL if name in _SUMS | _MOVES else _first_axis(result)
    if not isinstance(one.layout, int):
        return BROADCAST
    axis = _axis_of(call, one, result, ranks)
    if axis is not None:
        return axis
    if name in _SUMS or name == "__getitem__":
        return PARTIAL
    if name in ("cat", "concat", "split", "chunk", "narrow", "flip", "roll") and result.dim() > 1:
        return 1 if one.layout == 0 else 0
    return _first_axis(result)


def _axis_of(call: Callable[..., Any], one: Input, result: torch.Tensor, ranks: int) -> int | None:
    """Return the axis along which the owners of a result's elements follow each other as in a split tensor."""
    assert isinstance(one.layout, int)
    owners = owners_of(one.shape, one.layout, ranks)
    low, high = call(owners, torch.amin), call(owners, torch.amax)
    if low.shape != result.shape or not torch.equal(low, high):
        return None
    for axis in range(result.dim()):
        if result.shape[axis] >= ranks and torch.equal(low, owners_of(tuple(result.shape), axis, ranks)):
            return axis
    return None


def owners_of(shape: tuple[int, ...], axis: int, ranks: int) -> torch.Tensor:
    """Return, for each element, the position of the rank that has it if the tensor is split along ``axis``."""
    counts = torch.tensor(cut(shape[axis], ranks))
    line = torch.repeat_interleave(torch.arange(ranks, dtype=torch.float32), counts)
    return line.reshape([-1 if place == axis else 1 for place in range(len(shape))]).expand(shape).contiguous()
