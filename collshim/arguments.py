"""Arguments are judged before anything is sent: what came, what was wanted, on which rank."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor

from collshim.arithmetic import meaning
from collshim.arrays import Array, FromTorch, as_output, as_torch, like
from collshim.call import REDUCE_OPS, TAGS, Shape, name_of
from collshim.errors import (
    ArgumentError,
    ArgumentIndexError,
    ArgumentTypeError,
    ArgumentValueError,
    refusal,
)
from collshim.layout import Parts

T = TypeVar("T")


class Place(Protocol):
    """Who asks: a rank in a group."""

    @property
    def rank(self) -> int:
        """The rank in the group."""
        ...

    @property
    def size(self) -> int:
        """How many ranks the group has."""
        ...


class Target(NamedTuple):
    """Where a result goes: what the transport writes to, and how that reaches the caller's own memory."""

    written: Parts
    own: Parts

    def settle(self) -> None:
        """Bring what was written to where the caller wants it, where that is another place."""
        if isinstance(self.own, Tensor):
            _write_back(self.own, self.written)
        else:
            for own, written in zip(self.own, self.written, strict=True):
                _write_back(own, written)


def _write_back(own: Tensor, written: Parts) -> None:
    if isinstance(written, Tensor) and own is not written:
        own.copy_(written)


def tensor_of(place: Place, op: str, array: Array, what: str = "input") -> Tensor:
    """One array as a torch tensor to read from."""
    return array if type(array) is Tensor else _told(place, op, lambda: as_torch(array, what=what))


def kind_of(place: Place, op: str, array: Array) -> FromTorch | None:
    """How a result becomes the kind of ``array``; refused here where there is no way back."""
    return _told(place, op, lambda: like(array))


def parts_of(place: Place, op: str, parts: Array, what: str = "input") -> Parts:
    """One part per rank: a rank-leading array, or a list or tuple of ``size`` arrays of one dtype and device."""
    if not isinstance(parts, list | tuple):
        stacked = tensor_of(place, op, parts, what)
        refuse_kind(place, op, stacked)
        if stacked.dim() == 0 or stacked.shape[0] != place.size:
            wanted = f"({place.size}, ...), one part per rank"
            raise ArgumentValueError(_text(place, op, f"{what}'s shape", tuple(stacked.shape), wanted))
        return stacked
    found = [tensor_of(place, op, part, f"{what}[{index}]") for index, part in enumerate(parts)]
    _require_length(place, op, found, what)
    _require_alike(place, op, found, what)
    for part in found:
        refuse_kind(place, op, part)
    return found


def output_of(place: Place, op: str, out: Array, shape: Sequence[int], like: Tensor) -> Target:
    """``out`` as the place of one tensor of this shape, and of the dtype and device of ``like``."""
    own = _told(place, op, lambda: as_output(out))
    _require_fit(place, op, own, shape, like, "output")
    return Target(_writable(own), own.detach())


def outputs_of(place: Place, op: str, out: Array, shapes: Sequence[Shape] | None, like: Tensor) -> Target:
    """``out`` as the place of one part per rank: rank-leading, or a list; shapes None takes any."""
    if not isinstance(out, list | tuple):
        shape = shapes[0] if shapes else tuple(like.shape)
        return output_of(place, op, out, (place.size, *shape), like)
    own = [_told(place, op, lambda part=part: as_output(part)) for part in out]  # type: ignore[misc]
    _require_length(place, op, own, "output")
    for index, part in enumerate(own):
        wanted = tuple(part.shape) if shapes is None else shapes[index]
        _require_fit(place, op, part, wanted, like, f"output[{index}]")
    return Target([_writable(part) for part in own], [part.detach() for part in own])


def rank_of(place: Place, op: str, what: str, rank: Any) -> int:
    """A rank of the group."""
    number = _int_of(place, op, what, rank)
    if not 0 <= number < place.size:
        raise ArgumentIndexError(_text(place, op, what, number, f"from 0 to {place.size - 1}"))
    return number


def tag_of(place: Place, op: str, tag: Any) -> int:
    """A message's tag."""
    number = _int_of(place, op, "tag", tag)
    if not 0 <= number < TAGS:
        raise ArgumentValueError(_text(place, op, "tag", number, f"from 0 to {TAGS - 1}"))
    return number


def reduce_op_of(place: Place, op: str, reduce_op: Any, dtype: torch.dtype) -> tuple[str, float | None]:
    """The reduce operation's name and, for premul_sum, its factor."""
    name, factor = reduce_op if isinstance(reduce_op, tuple) and len(reduce_op) == 2 else (reduce_op, None)
    scaled = isinstance(factor, float | int) and not isinstance(factor, bool)
    fitting = scaled if name == "premul_sum" else factor is None
    if not isinstance(name, str) or name not in REDUCE_OPS or not fitting:
        wanted = f'one of {", ".join(REDUCE_OPS[:-1])} or ("premul_sum", factor)'
        raise ArgumentValueError(_text(place, op, "reduce op", repr(reduce_op), wanted))
    lacking = meaning(name, dtype)
    if lacking is not None:
        raise ArgumentValueError(_text(place, op, "dtype", name_of(dtype), f"one with {lacking}, for op {name}"))
    return name, factor


def readable(tensor: Tensor) -> Tensor:
    """What a transport reads: detached, contiguous, with no lazy conjugation."""
    found = tensor.detach() if tensor.requires_grad else tensor
    if found.is_conj() or found.is_neg():
        found = found.resolve_conj().resolve_neg()
    return found if found.is_contiguous() else found.contiguous()


def readable_parts(parts: Parts) -> Parts:
    """``readable`` of one part per rank."""
    return readable(parts) if isinstance(parts, Tensor) else [readable(part) for part in parts]


def refuse_kind(place: Place, op: str, tensor: Tensor) -> None:
    """Dense tensors with memory only."""
    if tensor.layout is not torch.strided or tensor.device.type == "meta" or tensor.is_quantized:
        got = f"{tensor.layout} on {tensor.device}" + (", quantized" if tensor.is_quantized else "")
        raise ArgumentTypeError(_text(place, op, "input", got, "a dense tensor with memory"))


def _int_of(place: Place, op: str, what: str, value: Any) -> int:
    try:
        return operator.index(str(value) if isinstance(value, bool) else value)  # type: ignore[arg-type]
    except TypeError as error:
        raise ArgumentTypeError(_text(place, op, what, repr(value), "an int")) from error


def _writable(own: Tensor) -> Tensor:
    own = own.detach()
    if own.is_contiguous() and not own.is_conj() and not own.is_neg():
        return own
    return torch.empty(own.shape, dtype=own.dtype, device=own.device)


def _require_length(place: Place, op: str, parts: Sequence[Tensor], what: str) -> None:
    if len(parts) != place.size:
        raise ArgumentValueError(_text(place, op, f"length of {what} list", len(parts), f"{place.size}, one per rank"))


def _require_alike(place: Place, op: str, parts: Sequence[Tensor], what: str) -> None:
    for index, part in enumerate(parts):
        if part.dtype is not parts[0].dtype:
            wanted = f"{name_of(parts[0].dtype)} as {what}[0]"
            raise ArgumentTypeError(_text(place, op, f"dtype of {what}[{index}]", name_of(part.dtype), wanted))
        if part.device != parts[0].device:
            wanted = f"{parts[0].device} as {what}[0]"
            raise ArgumentValueError(_text(place, op, f"device of {what}[{index}]", part.device, wanted))


def _require_fit(place: Place, op: str, own: Tensor, shape: Sequence[int], like: Tensor, what: str) -> None:
    if own.dtype is not like.dtype:
        got, wanted = name_of(own.dtype), f"{name_of(like.dtype)} as the input"
        raise ArgumentTypeError(_text(place, op, f"dtype of {what}", got, wanted))
    if own.device != like.device:
        raise ArgumentValueError(_text(place, op, f"device of {what}", own.device, f"{like.device} as the input"))
    if tuple(own.shape) != tuple(shape):
        raise ArgumentValueError(_text(place, op, f"shape of {what}", tuple(own.shape), tuple(shape)))


def _told(place: Place, op: str, convert: Callable[[], T]) -> T:
    """Run a conversion; where it refuses, say in which collective and on which rank."""
    try:
        return convert()
    except ArgumentError as error:
        raise type(error)(f"{op}: {error} (rank {place.rank} of {place.size})") from error.__cause__


def _text(place: Place, op: str, what: str, got: object, wanted: object) -> str:
    return refusal(op, what, got, wanted, place.rank, place.size)
