"""Global tensors of OneFlow 0.9.0: ``to_global``, ``to_local``, and what is computed from them.

Every rank keeps the whole tensor. Its ``sbp`` determines which part ``to_local`` returns: one layout for each dimension
of ranks. So results need no communication. Only ``to_global`` and ``to_local`` call collectives, on all ranks of the
world, including those outside the placement, as OneFlow's programs do.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch
from torch.nn import functional

from collshim import world
from collshim.errors import ArgumentError, ArgumentTypeError, also
from collshim.oneflow.framework import parts
from collshim.oneflow.framework.calls import Call, globals_in, is_global, require_sum_after
from collshim.oneflow.framework.conversions import part_here, whole_of_all
from collshim.oneflow.framework.layouts import (
    BROADCAST,
    PARTIAL,
    Input,
    Layout,
    Layouts,
    Spread,
    infer,
    sums,
)
from collshim.oneflow.framework.normalization import batch_norm
from collshim.oneflow.framework.tensor import Tensor, adopt_tensor, dtype_name, plain, require_alike
from collshim.oneflow.global_tensors import layouts_of
from collshim.oneflow.global_tensors import placement as Placement
from collshim.oneflow.global_tensors import sbp as Sbp

_WIDTH = 80


class GlobalTensor(Tensor):
    """A tensor that is spread over the ranks of a placement."""

    _place: Placement
    _layouts: Layouts
    _part: torch.Tensor | None = None
    _part_version: int

    is_local = False
    is_global = True

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call torch's function on the whole tensors; new tensors in its result are global too."""
        named = dict(kwargs or {})
        require_sum_after(func, args, named)
        func = batch_norm if func is functional.batch_norm else func
        with torch._C.DisableTorchFunctionSubclass():
            found = globals_in([*args, *named.values()])
            result = func(*args, **named)
            if not found or (args and result is args[0]):
                return result
            return _spread_result(func, args, named, found, result)

    @property
    def placement(self) -> Placement:
        """The ranks that the tensor is spread over."""
        return self._place

    @property
    def sbp(self) -> tuple[Sbp, ...]:
        """The tensor's layout on each dimension of its ranks."""
        return tuple(Sbp.of(layout) for layout in self._layouts)

    @property
    def grad(self) -> Any:
        """The gradient as a global tensor on the same ranks, or None."""
        found = super().grad
        return None if found is None else _made(plain(found), self._place, self._layouts)

    @grad.setter
    def grad(self, value: Any) -> None:
        whole: Any = Tensor.grad
        whole.fset(self, value if value is None else plain(value))

    @grad.deleter
    def grad(self) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        whole: Any = Tensor.grad
        whole.fdel(self)

    def to_global(self, placement: Any = None, sbp: Any = None, **options: Any) -> GlobalTensor:  # type: ignore[override]
        """Return the same tensor on other ranks or in another layout; see the function ``to_global``."""
        _require_options("global_to_global", options, "grad_sbp", "check_meta")
        place = self._place if placement is None else placement
        layouts = layouts_of(self.sbp if sbp is None else sbp, place)
        if options.get("grad_sbp") is not None:  # a gradient always has its tensor's layout
            layouts_of(options["grad_sbp"], place)
        return _checked(plain(self), place, layouts, _part_of_sum(self, place, layouts))

    global_to_global = to_global  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]

    def to_local(self, *, copy: bool = False) -> Tensor:  # type: ignore[override]
        """Return this rank's part, always a copy; gradients flow back from the part to this tensor."""
        own = _summand(self, self._place, self._layouts, sums(self._layouts))
        return adopt_tensor(part_here(plain(self), own, self._place, self._layouts))

    def copy_(self, other: Any, *args: Any) -> None:  # type: ignore[override]
        """Copy the values of ``other``, a global tensor or the whole of one, into this tensor; see ``Tensor.copy_``."""
        require_alike(self, other)
        super().copy_(plain(other) if isinstance(other, torch.Tensor) else other, *args)

    def _own_part(self) -> torch.Tensor | None:
        """Return this rank's part of the sum, or None if it is no sum or was changed in place after it became one."""
        with torch._C.DisableTorchFunctionSubclass():
            return self._part if self._version == self._part_version else None

    def as_parameter(self, requires_grad: bool) -> GlobalTensor:
        """Return this tensor as a module's parameter, in the same memory."""
        made = _made(plain(self.detach()), self._place, self._layouts, self._own_part())
        made._is_param = True
        made.requires_grad_(requires_grad)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            made = _made(plain(self.detach()).clone(), self._place, self._layouts, self._own_part())
            made.requires_grad_(self.requires_grad)
            vars(made).update({name: True for name in ("_is_param",) if name in vars(self)})
            memo[id(self)] = made
        return memo[id(self)]

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        """Return OneFlow's text, with placement and sbp."""
        shown = repr(adopt_tensor(plain(self.detach()).clone())).rpartition(", dtype=")[0]
        facts = [f"placement={self.placement}", f"sbp={self.sbp}", f"dtype={dtype_name(self.dtype)}"]
        if self.grad_fn is not None:
            facts.append(f"grad_fn=<{type(self.grad_fn).__name__}>")
        elif self.requires_grad:
            facts.append("requires_grad=True")
        for fact in facts:
            fits = len(shown) - shown.rfind("\n") + len(fact) + 2 <= _WIDTH
            shown += f", {fact}" if fits else f",\n       {fact}"
        return f"{shown})"


def on_ranks(values: torch.Tensor, place: Placement) -> GlobalTensor:
    """Return a global tensor with these whole values, equal on all ranks of ``place``; nothing is sent."""
    return _made(plain(values), place, _equal_on(place))


def _made(values: torch.Tensor, place: Placement, layouts: Layouts, part: torch.Tensor | None = None) -> GlobalTensor:
    """Return a global tensor with these whole values, and this rank's part of the sum if it is one."""
    with torch._C.DisableTorchFunctionSubclass():
        made = values.as_subclass(GlobalTensor)
        made._part_version = made._version
    made._place, made._layouts, made._part = place, layouts, part
    return made


def _checked(
    values: torch.Tensor, place: Placement, layouts: Layouts, part: torch.Tensor | None = None
) -> GlobalTensor:
    """Do the same as ``_made``; raise a RuntimeError if any rank would have no part."""
    room = list(values.shape)
    _check_axes(layouts, len(room))
    for layout, count in zip(layouts, place.ranks.shape, strict=True):
        if isinstance(layout, int):
            if room[layout] < count:
                shape, given = tuple(values.shape), [Sbp.of(each) for each in layouts]
                text = f"sbp is {given}, and the shape {shape} has no {count} parts along that axis"
                raise also(ArgumentError, RuntimeError)(text + world.place())
            room[layout] //= count
    return _made(values, place, layouts, part)


def _check_axes(layouts: Layouts, dims: int) -> None:
    """Raise a RuntimeError if a layout splits an axis that the tensor does not have."""
    for layout in layouts:
        if isinstance(layout, int) and layout >= dims:
            text = f"Split axis out of range (expected to be in range of [0, {dims}), but got {layout}!)"
            raise also(ArgumentError, RuntimeError)(text + world.place())


def _summand(tensor: GlobalTensor, place: Placement, layouts: Layouts, dims: Sequence[int]) -> torch.Tensor:
    """Return this rank's part of the sum that the whole becomes along ``dims``: zeros except for what this rank has."""
    with torch._C.DisableTorchFunctionSubclass():
        values, held = plain(tensor).detach(), sums(layouts)
        part = tensor._own_part()
        if part is not None and set(held) <= set(dims):
            values, dims = part, [dim for dim in dims if dim not in held]
        return parts.summand(values, place, layouts, dims)


def _part_of_sum(tensor: GlobalTensor, place: Placement, layouts: Layouts) -> torch.Tensor | None:
    """Return this rank's part of the sum that a global tensor becomes on ``place``, or None if it does not become one.

    If it is a sum along other dimensions of ranks, the parts along these are added; all ranks must call this.
    """
    if not sums(layouts):
        return None
    grid = max(place, tensor._place, key=lambda each: each.ranks.ndim)
    if not (_have_same_ranks(grid, place) and _have_same_ranks(grid, tensor._place)):
        return parts.summand(plain(tensor).detach(), place, _equal_on(place), sums(layouts))
    old, new = (_widened(each, grid) for each in (tensor._layouts, layouts))
    ended = [dim for dim in sums(old) if dim not in sums(new)]
    own = _summand(tensor, grid, _through_whole(tensor, old, new, grid), [*sums(new), *ended])
    if not ended:
        return own
    found, index = parts.everyones(own, grid), parts.position(grid)
    joins = [
        parts.sum_in(own.dtype) if dim in ended else parts.pick(index[dim] if index else 0) for dim in range(len(new))
    ]
    return parts.put_together(found, grid.ranks.shape, joins)


def _equal_on(place: Placement) -> Layouts:
    return (BROADCAST,) * place.ranks.ndim


def _have_same_ranks(grid: Placement, place: Placement) -> bool:
    """Return whether the ranks are those of ``grid``, in the same order, in its dimensions or in one."""
    known = place.ranks.shape in (grid.ranks.shape, (grid.ranks.size,))
    return known and place.ranks.reshape(-1).tolist() == grid.ranks.reshape(-1).tolist()


def _widened(layouts: Layouts, grid: Placement) -> Layouts:
    """Return a layout of all ranks, repeated for each of their dimensions."""
    return layouts * grid.ranks.ndim if len(layouts) == 1 else layouts


def _through_whole(tensor: GlobalTensor, old: Layouts, new: Layouts, grid: Placement) -> Layouts:
    """Return the layouts, with ``broadcast`` for those from which OneFlow computes a sum through the whole tensor.

    OneFlow does this if several dimensions of ranks split an axis that stays split, or split it unevenly.
    """

    def nested(layout: Layout) -> bool:
        counts = [count for count, each in zip(grid.ranks.shape, old, strict=True) if each == layout]
        return (
            isinstance(layout, int)
            and len(counts) > 1
            and (layout in new or bool(tensor.shape[layout] % math.prod(counts)))
        )

    return tuple(BROADCAST if nested(layout) else layout for layout in old)


def to_global(local: torch.Tensor, placement: Any = None, sbp: Any = None, **options: Any) -> GlobalTensor:
    """Return the global tensor that consists of the ranks' local tensors; all ranks must call this.

    If ``local`` is already a global tensor, return it on the ranks and in the layout of the arguments.

    Args:
        local: this rank's part: a piece along the axis of ``split``, or a summand of ``partial_sum``; for
            ``broadcast``, the first rank's tensor is used.
        placement: the ranks.
        sbp: the layout, or one for each dimension of ranks.
        options: ``check_meta``, ``grad_sbp`` (of a global tensor) and ``copy`` (of a local one) have no effect.

    Raises:
        RuntimeError: ``placement`` or ``sbp`` is None; a rank would have no part; the axis of a split does not exist.
        TypeError: ``sbp`` is not an sbp, an option does not exist, or ``local`` is a local tensor and ``grad_sbp`` is
            not None.
    """
    if isinstance(local, GlobalTensor):
        return local.to_global(placement, sbp, **options)
    if placement is None or sbp is None:
        text = "to_global: a local tensor needs a placement and an sbp"
        raise also(ArgumentError, RuntimeError)(text + world.place())
    given = {name: value for name, value in options.items() if name != "grad_sbp" or value is not None}
    _require_options("local_to_global", given, "check_meta", "copy")
    layouts = layouts_of(sbp, placement)
    _check_axes(layouts, local.dim())
    values, part = whole_of_all(plain(local), placement, layouts)
    return _checked(values, placement, layouts, part if sums(layouts) else None)


def _require_options(function: str, options: Mapping[str, Any], *names: str) -> None:
    unknown = next((name for name in options if name not in names), None)
    if unknown is not None:
        text = f"'{unknown}' is an invalid keyword argument for {function}()"
        raise also(ArgumentError, TypeError)(text + world.place())


def spread(whole: torch.Tensor, placement: Any, sbp: Any, device: Any = None) -> GlobalTensor:
    """Return a new global tensor with the whole values of the placement's first rank; all ranks must call this.

    Raises:
        AssertionError: ``placement`` or ``sbp`` is None, or ``device`` is not None. It is also a TypeError, which
            OneFlow raises in ``eye``, ``tensor`` and others.
    """
    if placement is None or sbp is None or device is not None:
        given = f"placement: {placement}, sbp: {sbp}, device: {device}"
        text = f"{given}: should be a placement and an sbp, without a device"
        raise also(ArgumentTypeError, AssertionError)(text + world.place())
    layouts, first = layouts_of(sbp, placement, AssertionError), int(placement.ranks.reshape(-1)[0])
    values = plain(whole.detach()).contiguous()
    comm = world.current().communicator
    made = _checked(comm.broadcast(values, first).wait(), placement, layouts)
    made.requires_grad_(whole.requires_grad)
    return made


def _share(piece: torch.Tensor, other: torch.Tensor) -> bool:
    return piece.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()


def _spread_result(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], found: list[GlobalTensor], result: Any
) -> Any:
    """Return a function's result with its tensors as global ones, on the ranks of the first argument with axes."""
    place = next((one for one in found if one.dim()), found[0])._place
    found = [one if one._place.is_at(place) else _made(plain(one), place, _equal_on(place)) for one in found]

    def spread_one(piece: Any, index: int | None) -> Any:
        if not isinstance(piece, torch.Tensor) or isinstance(piece, GlobalTensor):
            return piece
        call = Call(func, args, kwargs, index)
        if func in _COPIES:
            return _made(piece, place, found[0]._layouts, found[0]._own_part())
        if any(_share(piece, one) for one in found):  # in OneFlow this is a new, contiguous tensor
            piece = piece.clone(memory_format=torch.contiguous_format)
        inputs = [Input(tuple(one.shape), one._layouts, one.nbytes) for one in found]
        how = infer(call.name, call.with_owners, inputs, piece, place.ranks.shape, call.along)
        return _made(piece, place, how.layouts, _part_of_result(call, found, how) if sums(how.layouts) else None)

    if not isinstance(result, list | tuple):
        return spread_one(result, None)
    return type(result)([spread_one(piece, index) for index, piece in enumerate(result)])


_COPIES = {
    torch.Tensor.detach,
    torch.Tensor.clone,
    torch.Tensor.data.__get__,  # type: ignore[attr-defined]
    torch.Tensor.requires_grad_,
    torch.Tensor.contiguous,
}


def _part_of_result(call: Call, found: Sequence[GlobalTensor], how: Spread) -> torch.Tensor:
    """Return this rank's part of a result that is a sum: that of its parts of the sums, or of one split input.

    If the whole is not the sum of the results for the parts, it counts as the first rank's part, except that each rank
    has the loss of its own elements.
    """
    place, dims = found[0]._place, sums(how.layouts)
    with torch.no_grad():
        if call.counts_whole:
            whole: torch.Tensor = plain(call.result(map(plain, found))).detach()
            axes = {dim: axis for dim in dims if isinstance(axis := how.taken[dim].inputs[0], int)}
            if call.is_loss and not whole.dim() and len(axes) == len(dims):
                each = call.result(map(plain, found), reduction="none")
                if max(axes.values()) < each.dim():  # not if classes are split
                    return parts.share_of_loss(whole, each, place, axes)
            return parts.summand(whole, place, _equal_on(place), dims)
        instead = [_summand(one, place, *_divided(one, how, index, dims)) for index, one in enumerate(found)]
        return cast(torch.Tensor, plain(call.result(iter(instead))).detach())


def _divided(one: GlobalTensor, how: Spread, index: int, sums: Sequence[int]) -> tuple[Layouts, list[int]]:
    """Return how an input becomes the parts of a sum: its layouts, and the dimensions of ranks that divide it.

    These are the dimensions along which a function takes it as a sum, or as the first of its inputs that is split.
    """
    layouts, dims = list(one._layouts), []
    for dim in sums:
        taken = how.taken[dim].inputs
        first = next((place for place, layout in enumerate(taken) if isinstance(layout, int)), None)
        if taken[index] == PARTIAL or index == first:
            dims.append(dim)
            layouts[dim] = taken[index] if index == first else layouts[dim]
    return tuple(layouts), dims


Tensor.to_global = Tensor.local_to_global = to_global  # type: ignore[assignment]


def _spreadable(method: Callable[..., Any]) -> Callable[..., Any]:
    """Extend a method that makes a new tensor: with ``placement`` and ``sbp`` it makes a global one."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, placement: Any = None, sbp: Any = None, **kwargs: Any) -> Any:
        if placement is None and sbp is None:
            made = method(self, *args, **kwargs)
            return made.to_global(sbp=self.sbp) if is_global(self) else made
        with torch._C.DisableTorchFunctionSubclass():
            return spread(method(plain(self), *args, **kwargs), placement, sbp, kwargs.get("device"))

    return call


Tensor.__new__ = _spreadable(Tensor.__new__)  # type: ignore[method-assign]
for _name in ("new_empty", "new_full", "new_ones", "new_tensor", "new_zeros"):
    setattr(Tensor, _name, _spreadable(getattr(Tensor, _name)))
