"""Global tensors of OneFlow 0.9.0 on one dimension of ranks: ``to_global``, ``to_local``, and what is computed of them.

Every rank keeps the whole tensor, whose ``sbp`` says which part ``to_local`` returns. So results need no
communication, and only ``to_global`` and ``to_local`` call collectives: of all ranks of the world, also of those
outside of the placement, as OneFlow's programs do.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, cast

import torch

from collshim import world
from collshim.errors import ArgumentError, CollshimError, also
from collshim.oneflow.framework.layouts import BROADCAST, PARTIAL, REDUCING, Input, Layout, cut, infer
from collshim.oneflow.framework.tensor import Tensor, adopt_tensor, dtype_name, plain
from collshim.oneflow.global_tensors import placement as Placement
from collshim.oneflow.global_tensors import sbp as Sbp


class GlobalTensor(Tensor):
    """A tensor that is spread over the ranks of a placement."""

    _place: Placement
    _layout: Layout
    _part: torch.Tensor | None = None

    is_local = False
    is_global = True

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call torch's function with the whole tensors; new tensors in its result are global too."""
        named = dict(kwargs or {})
        found = _globals_in([*args, *named.values()])
        with torch._C.DisableTorchFunctionSubclass():
            result = func(*args, **named)
            if not found or (args and result is args[0]):
                return result
            return _spread_result(func, args, named, found, result)

    @property
    def placement(self) -> Placement:
        """The ranks that it is spread over."""
        return self._place

    @property
    def sbp(self) -> tuple[Sbp, ...]:
        """How it is spread."""
        return (Sbp.of(self._layout),)

    @property
    def grad(self) -> Any:
        """The gradient, spread alike, or None."""
        found = super().grad
        return None if found is None else _made(plain(found), self._place, _layout_of_gradient(self._layout))

    @grad.setter
    def grad(self, value: Any) -> None:
        whole: Any = Tensor.grad
        whole.fset(self, value if value is None else plain(value))

    @grad.deleter
    def grad(self) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        whole: Any = Tensor.grad
        whole.fdel(self)

    def to_global(self, placement: Any = None, sbp: Any = None, **options: Any) -> GlobalTensor:  # type: ignore[override]
        """Return the same tensor, spread otherwise; see ``to_global``."""
        place = self._place if placement is None else placement
        layout = self._layout if sbp is None else layout_of(sbp, place)
        return _checked(plain(self), place, layout, _own_part(self, place) if layout == PARTIAL else None)

    def to_local(self) -> Tensor:  # type: ignore[override]
        """Return this rank's part; its gradients are those of the part."""
        return adopt_tensor(_ToLocal.apply(plain(self), self))  # type: ignore[no-untyped-call]

    def copy_(self, other: Any, *args: Any) -> None:  # type: ignore[override]
        """Copy values, a global tensor's or whole ones, such as ``load`` returns, into this tensor."""
        super().copy_(plain(other) if isinstance(other, torch.Tensor) else other, *args)

    def as_parameter(self, requires_grad: bool) -> GlobalTensor:
        """Return it as a parameter of modules, with the same memory."""
        made = _made(plain(self.detach()), self._place, self._layout, self._part)
        made._is_param = True
        made.requires_grad_(requires_grad)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            made = _made(plain(self.detach()).clone(), self._place, self._layout, self._part)
            made.requires_grad_(self.requires_grad)
            vars(made).update({name: True for name in ("_is_param",) if name in vars(self)})
            memo[id(self)] = made
        return memo[id(self)]

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        """Return OneFlow's form, with placement and sbp."""
        numbers = repr(adopt_tensor(plain(self.detach()).clone())).rpartition(", dtype=")[0]
        facts = f"placement={self.placement},\n       sbp={self.sbp}, dtype={dtype_name(self.dtype)}"
        more = f", grad_fn=<{type(self.grad_fn).__name__}>" if self.grad_fn is not None else ""
        return f"{numbers}, {facts}{more or (', requires_grad=True' if self.requires_grad else '')})"


def _made(values: torch.Tensor, place: Placement, layout: Layout, part: torch.Tensor | None = None) -> GlobalTensor:
    """Return a global tensor with these whole values."""
    with torch._C.DisableTorchFunctionSubclass():
        made = values.as_subclass(GlobalTensor)
    made._place, made._layout, made._part = place, layout, part
    return made


def _checked(values: torch.Tensor, place: Placement, layout: Layout, part: torch.Tensor | None = None) -> GlobalTensor:
    """Do the same after a check that each rank gets a part."""
    ranks = place.ranks.size
    if isinstance(layout, int) and (layout >= values.dim() or values.shape[layout] < ranks):
        text = f"sbp is {Sbp.of(layout)}, and the shape {tuple(values.shape)} has no {ranks} parts along that axis"
        raise also(ArgumentError, RuntimeError)(text + world.place())
    return _made(values, place, layout, part)


def _layout_of_gradient(layout: Layout) -> Layout:
    return BROADCAST if layout == PARTIAL else layout


def layout_of(sbp: Any, place: Placement) -> Layout:
    """Return the layout of an ``sbp``, or of a list with one.

    Raises:
        TypeError: it is another value. RuntimeError: the placement has several dimensions, or the list is longer.
    """
    each = list(sbp) if isinstance(sbp, list | tuple) else [sbp]
    if not each or not all(isinstance(one, Sbp) for one in each):
        raise also(ArgumentError, TypeError)(f"Invalid parameter sbp with type {type(sbp)}{world.place()}")
    if len(each) > 1 or place.ranks.ndim > 1:
        text = f"sbp is {sbp} on {place}: global tensors have one dimension of ranks here, with one sbp"
        raise also(CollshimError, RuntimeError)(text + world.place())
    layout: Layout = each[0].layout
    return layout


def _index(place: Placement) -> int | None:
    """Return this rank's place in the placement; None if it is not in it."""
    ranks = place.ranks.reshape(-1).tolist()
    own = world.current().rank
    return ranks.index(own) if own in ranks else None


def _slice(values: torch.Tensor, place: Placement, axis: int) -> torch.Tensor:
    """Return this rank's part of values that are split along an axis."""
    index = _index(place)
    lengths = cut(values.shape[axis], place.ranks.size)
    return values.new_empty(0) if index is None else values.narrow(axis, sum(lengths[:index]), lengths[index])


def _own_part(tensor: GlobalTensor, place: Placement) -> torch.Tensor:
    """Return this rank's part of the sum that the whole is: zeros but for what this rank has."""
    with torch._C.DisableTorchFunctionSubclass():
        values = plain(tensor).detach()
        if tensor._part is not None and place == tensor._place:
            return tensor._part
        index, part = _index(place), torch.zeros_like(values)
        if isinstance(tensor._layout, int) and index is not None:
            lengths = cut(values.shape[tensor._layout], place.ranks.size)
            where = (tensor._layout, sum(lengths[:index]), lengths[index])
            part.narrow(*where).copy_(values.narrow(*where))
        elif index == 0:
            part.copy_(values)
        return part


def _everyones(values: torch.Tensor) -> list[torch.Tensor]:
    """Return every rank's tensor, of any shape, in rank order."""
    comm = world.current().communicator
    own = values.contiguous()
    shapes = comm.all_gather_object(tuple(own.shape)).wait()
    return list(comm.all_to_all([own] * comm.size, shapes=shapes).wait())


class _ToGlobal(torch.autograd.Function):
    """The whole tensor of all ranks' local ones."""

    @staticmethod
    def forward(ctx: Any, local: torch.Tensor, place: Placement, layout: Layout) -> torch.Tensor:
        ctx.place, ctx.layout = place, layout
        parts = [part for rank, part in enumerate(_everyones(local)) if rank in place.ranks]
        if isinstance(layout, int):
            return torch.cat(parts, layout)
        return parts[0].clone() if layout == BROADCAST else torch.stack(parts).sum(0, dtype=local.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        gradient = plain(gradients[0])
        if isinstance(ctx.layout, int):
            gradient = _slice(gradient, ctx.place, ctx.layout)
        elif ctx.layout == BROADCAST and _index(ctx.place) != 0:
            gradient = torch.zeros_like(gradient)
        return gradient, None, None


class _ToLocal(torch.autograd.Function):
    """This rank's part of a whole tensor."""

    @staticmethod
    def forward(ctx: Any, values: torch.Tensor, tensor: GlobalTensor) -> torch.Tensor:
        place, layout = tensor._place, tensor._layout
        ctx.place, ctx.layout, ctx.like = place, layout, values
        if isinstance(layout, int):
            return _slice(values, place, layout).clone()
        if _index(place) is None:
            return values.new_empty(0)
        return (_own_part(tensor, place) if layout == PARTIAL else values).clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        gradient = plain(gradients[0])
        if ctx.layout == PARTIAL:
            return gradient, None
        parts = [part for rank, part in enumerate(_everyones(gradient)) if rank in ctx.place.ranks]
        return torch.cat(parts, ctx.layout) if isinstance(ctx.layout, int) else torch.stack(parts).sum(0), None


def to_global(local: torch.Tensor, placement: Any = None, sbp: Any = None, **options: Any) -> GlobalTensor:
    """Return the global tensor whose parts the ranks' local tensors are; all ranks call this.

    A tensor that is global already is spread otherwise.

    Args:
        local: this rank's part: a piece along the axis of ``split``; a summand of ``partial_sum``; for ``broadcast``
            the first rank's tensor counts.
        placement: the ranks.
        sbp: the layout.
        options: ``grad_sbp``, ``check_meta`` and ``copy`` are accepted.

    Raises:
        RuntimeError: ``placement`` or ``sbp`` is None; a rank gets no part.
        TypeError: ``sbp`` is another value.
    """
    if isinstance(local, GlobalTensor):
        return local.to_global(placement, sbp)
    if placement is None or sbp is None:
        text = "Converting a local tensor to global tensor must have placement and sbp parameters."
        raise also(ArgumentError, RuntimeError)(text + world.place())
    layout = layout_of(sbp, placement)
    values = _ToGlobal.apply(plain(local), placement, layout)  # type: ignore[no-untyped-call]
    part = plain(local).detach().clone() if layout == PARTIAL and _index(placement) is not None else None
    return _checked(values, placement, layout, part)


def spread(whole: torch.Tensor, placement: Any, sbp: Any, device: Any = None) -> GlobalTensor:
    """Return a new global tensor with the whole values of the placement's first rank; all ranks call this.

    Raises:
        AssertionError: ``placement`` or ``sbp`` is None, or ``device`` is not.
    """
    if placement is None or sbp is None or device is not None:
        given = f"placement: {placement}, sbp: {sbp}, device: {device}"
        text = f"{given}: should be a placement and an sbp, without a device"

        raise also(ArgumentError, AssertionError)(text + world.place())
    layout, first = layout_of(sbp, placement), int(placement.ranks.reshape(-1)[0])
    values = plain(whole.detach()).contiguous()
    comm = world.current().communicator
    made = _checked(comm.broadcast(values, first).wait(), placement, layout)
    made.requires_grad_(whole.requires_grad)
    return made


def _globals_in(values: Sequence[Any]) -> list[GlobalTensor]:
    """Return the global tensors among values, also in lists; refuse OneFlow's local ones beside them."""
    flat = [each for value in values for each in (value if isinstance(value, list | tuple) else (value,))]
    found = [each for each in flat if isinstance(each, GlobalTensor)]
    if found and any(type(each) is Tensor and each.dim() for each in flat):
        _refuse_mixture()
    return found


def _refuse_mixture() -> NoReturn:
    text = "Got input tensors with inconsistent attributes! attributes of inputs is: global, local"
    raise also(ArgumentError, RuntimeError)(f"{text}; call to_global of the local one{world.place()}")


def _share(piece: torch.Tensor, other: torch.Tensor) -> bool:
    return piece.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()


def _spread_result(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], found: list[GlobalTensor], result: Any
) -> Any:
    """Return a function's result with its tensors as global ones."""

    def spread_one(piece: Any, index: int | None) -> Any:
        if not isinstance(piece, torch.Tensor) or isinstance(piece, GlobalTensor):
            return piece
        call = _Call(func, args, kwargs, index)
        place, inputs = found[0]._place, [Input(tuple(plain(one).shape), one._layout) for one in found]
        if func in _COPIES:
            return _made(piece, place, inputs[0].layout, found[0]._part)
        if any(_share(piece, one) for one in found):  # in OneFlow this is a new, contiguous tensor
            piece = piece.clone(memory_format=torch.contiguous_format)
        layout = infer(call.name, call.with_owners, inputs, piece, place.ranks.size)
        part = call.with_parts(found) if layout == PARTIAL else None
        return _made(piece, place, layout, part)

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


_JOINS = {"cat", "concat", "stack"}


class _Call:
    """A call of a function of torch's, which can be repeated with other tensors in place of the global ones."""

    def __init__(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], index: int | None
    ) -> None:
        self._func, self._args, self._kwargs, self._index = func, args, kwargs, index
        self.name = getattr(func, "__name__", "")

    def with_owners(self, owners: torch.Tensor, reduce: Callable[..., Any]) -> torch.Tensor:
        """Return the result for the elements' owners; a reduction is that of ``reduce``."""
        if self.name not in REDUCING:
            given = [each for each in (*self._args, *self._kwargs.values()) if isinstance(each, GlobalTensor)]
            return cast(torch.Tensor, plain(self._result({}, owners, None if self.name in _JOINS else given[0])))
        axes = self._kwargs.get("dim", self._args[1] if len(self._args) > 1 else None)
        keep = bool(self._kwargs.get("keepdim", self._args[2] if len(self._args) > 2 else False))
        every = list(range(owners.dim())) if axes is None or axes == () else axes
        return cast(torch.Tensor, reduce(owners, every, keepdim=keep))

    def with_parts(self, found: Sequence[GlobalTensor]) -> torch.Tensor:
        """Return this rank's part of a result that is a sum: that of its parts of the sums, or of one split input.

        The whole of a loss counts as the first rank's, because it is no sum of the parts' losses.
        """
        summed = [one for one in found if one._layout == PARTIAL]
        chosen = summed or [next((one for one in found if one._layout != BROADCAST), found[0])]
        with torch.no_grad():
            if self.name.endswith("loss") or "entropy" in self.name:
                whole: torch.Tensor = plain(self._result({}, None)).detach()
                return whole if _index(found[0]._place) == 0 else torch.zeros_like(whole)
            part = plain(self._result({id(one): _own_part(one, one._place) for one in chosen}, None))
            return cast(torch.Tensor, part.detach())

    def _result(
        self, instead: Mapping[int, torch.Tensor], owners: torch.Tensor | None, only: GlobalTensor | None = None
    ) -> Any:
        def exchanged(value: Any) -> Any:
            if isinstance(value, list | tuple) and any(isinstance(each, torch.Tensor) for each in value):
                return type(value)([exchanged(each) for each in value])
            if not isinstance(value, GlobalTensor):
                return value
            if owners is not None and (only is None or value is only):
                return owners
            return instead.get(id(value), plain(value))

        args = [exchanged(arg) for arg in self._args]
        result = self._func(*args, **{name: exchanged(value) for name, value in self._kwargs.items()})
        return result if self._index is None else result[self._index]


def to_local(input: Any, *, copy: bool = False) -> Tensor:
    """Return this rank's part of a global tensor; refuse a local one with RuntimeError."""
    return cast(Tensor, input.to_local())


Tensor.to_global = to_global  # type: ignore[assignment]


def _spreadable(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that makes a new tensor, and takes ``placement`` and ``sbp`` for a global one."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, placement: Any = None, sbp: Any = None, **kwargs: Any) -> Any:
        if placement is None and sbp is None:
            return method(self, *args, **kwargs)
        with torch._C.DisableTorchFunctionSubclass():
            return spread(method(plain(self), *args, **kwargs), placement, sbp, kwargs.get("device"))

    return call


Tensor.__new__ = _spreadable(Tensor.__new__)  # type: ignore[method-assign]
for _name in ("new_empty", "new_full", "new_ones", "new_tensor", "new_zeros"):
    setattr(Tensor, _name, _spreadable(getattr(Tensor, _name)))
