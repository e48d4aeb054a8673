"""The parts of a tensor on the ranks of a placement: cut from the whole, joined, and taken from a sum.

Each function goes through the dimensions of ranks one by one, so one dimension is the simplest case.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import torch

from collshim import world
from collshim.oneflow.framework.layouts import BROADCAST, Layout, Layouts, cut
from collshim.oneflow.global_tensors import placement as Placement

Join = Callable[[list[torch.Tensor]], torch.Tensor]
"""A function that joins the parts of the ranks along one dimension."""


def position(place: Placement) -> tuple[int, ...] | None:
    """Return this rank's position in the placement, a number for each dimension; None if it is outside."""
    found = (place.ranks == world.current().rank).nonzero()
    return tuple(int(each[0]) for each in found) if found[0].size else None


def part_of(values: torch.Tensor, place: Placement, layouts: Layouts) -> torch.Tensor:
    """Return this rank's piece of values along the axes that are split; empty if this rank is not in the placement."""
    own = position(place)
    if own is None:
        return values.new_empty(0)
    for layout, count, index in zip(layouts, place.ranks.shape, own, strict=True):
        if isinstance(layout, int):
            lengths = cut(values.shape[layout], count)
            values = values.narrow(layout, sum(lengths[:index]), lengths[index])
    return values


def summand(values: torch.Tensor, place: Placement, layouts: Layouts, dims: Collection[int]) -> torch.Tensor:
    """Return this rank's part of the sum that the values become along some dimensions of ranks.

    Along a split axis it is what this rank has, and zeros elsewhere; otherwise the first rank's part is the whole.
    """
    own = position(place)
    if own is None or any(own[dim] and not isinstance(layouts[dim], int) for dim in dims):
        return torch.zeros_like(values)
    for dim in dims:
        axis = layouts[dim]
        if isinstance(axis, int):
            line = torch.tensor(_owners(values.shape[axis], place, layouts, dim), device=values.device)
            others = (line != own[dim]).reshape([-1 if each == axis else 1 for each in range(values.dim())])
            values = values.masked_fill(others, 0)
    return values.clone()


def share_of_loss(loss: torch.Tensor, each: torch.Tensor, place: Placement, axes: Mapping[int, int]) -> torch.Tensor:
    """Return this rank's part of a loss, which is the sum of ``each`` element's loss or a mean of these.

    ``axes`` has, for each dimension of ranks along which the loss is a sum, the axis of the elements that it splits.
    """
    layouts = tuple(axes.get(dim, BROADCAST) for dim in range(place.ranks.ndim))
    total = each.sum()
    if not total:
        return summand(loss, place, (BROADCAST,) * place.ranks.ndim, list(axes))
    return summand(each, place, layouts, list(axes)).sum() / total * loss


def _owners(length: int, place: Placement, layouts: Layouts, dim: int) -> list[int]:
    """Return, for each place on an axis, the position of its owner along one dimension of ranks that splits it.

    The dimensions before it may split the same axis.
    """
    pieces = [length]
    for layout, count in zip(layouts[:dim], place.ranks.shape[:dim], strict=True):
        if layout == layouts[dim]:
            pieces = [short for long in pieces for short in cut(long, count)]
    cuts = [cut(piece, place.ranks.shape[dim]) for piece in pieces]
    return [index for lengths in cuts for index, count in enumerate(lengths) for _ in range(count)]


def everyones(values: torch.Tensor, place: Placement) -> list[torch.Tensor]:
    """Return the tensors of the placement's ranks, in its order and of any shapes; all ranks must call this."""
    comm = world.current().communicator
    own = values.contiguous()
    shapes = comm.all_gather_object(tuple(own.shape)).wait()
    found = list(comm.all_to_all([own] * comm.size, shapes=shapes).wait())
    return [found[rank] for rank in place.ranks.reshape(-1).tolist()]


def put_together(parts: list[torch.Tensor], hierarchy: Sequence[int], joins: Sequence[Join]) -> torch.Tensor:
    """Join all ranks' parts, with one of ``joins`` for each dimension of ranks, the inner dimensions first."""
    if not joins:
        return parts[0]
    inner = len(parts) // hierarchy[0]
    groups = [parts[start : start + inner] for start in range(0, len(parts), inner)]
    return joins[0]([put_together(group, hierarchy[1:], joins[1:]) for group in groups])


def whole_of(layout: Layout, dtype: torch.dtype) -> Join:
    """Return a function that makes the whole from the parts of a layout; if the parts are equal, it takes the first."""
    if isinstance(layout, int):
        return lambda parts: torch.cat(parts, layout)
    return (lambda parts: parts[0]) if layout == BROADCAST else sum_in(dtype)


def sum_in(dtype: torch.dtype) -> Join:
    """Return a function that adds the parts."""
    return lambda parts: torch.stack(parts).sum(0, dtype=dtype)


def pick(index: int) -> Join:
    """Return a function that takes one of the parts."""
    return lambda parts: parts[index]
