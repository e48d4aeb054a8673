"""Validation of arguments before anything is sent. Each error states the value, what was expected, and the rank."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, SupportsIndex, TypeAlias, TypeVar

import torch
from torch import Tensor

from collshim.arrays import DENSE, Array, Arrays, FromTorch, as_output, as_torch, like, shares_elements, unsupported
from collshim.arrays.arithmetic import REDUCE_OPS, undefined_for
from collshim.calls.aliasing import sharing
from collshim.calls.call import TAGS, name_of
from collshim.calls.collective import Shape
from collshim.errors import ArgumentError, ArgumentIndexError, ArgumentTypeError, ArgumentValueError, refusal
from collshim.layout import Parts, listed, put_shared, split

T = TypeVar("T")
Shapes: TypeAlias = "Iterable[Iterable[SupportsIndex]]"


class Member(Protocol):
    """The rank whose arguments are validated, in a group of ``size``."""

    rank: int
    size: int


class Target(NamedTuple):
    """The memory of a result: the memory that the transport writes, and the caller's own, whose layout can differ."""

    written: Parts
    own: Parts
    refuse: Callable[[], None] | None = None
    """Raises an error because elements of ``own`` share memory but received different values; None if none share it."""

    @property
    def is_direct(self) -> bool:
        """Whether the transport writes to the caller's own memory."""
        if isinstance(self.own, Tensor):
            return self.own is self.written
        return all(own is written for own, written in zip(self.own, self.written, strict=True))

    def settle(self, out: Arrays) -> Arrays:
        """Copy a result from different memory to the caller's memory, and return ``out``, the caller's object."""
        if isinstance(self.own, Tensor):
            self.put(self.written)
            return out
        for own, written in zip(self.own, self.written, strict=True):
            if own is not written:
                own.copy_(written)
        return out

    def put(self, values: Arrays) -> None:
        """Copy a result into the caller's own tensor."""
        own: Any = self.own
        if self.refuse is None:
            own.copy_(values)
        elif not put_shared(own, values):
            self.refuse()


def error_text(member: Member, op: str, what: str, got: object, expected: object) -> str:
    """Return the error text for an argument of ``member``'s call."""
    return refusal(op, what, got, expected, member.rank, member.size)


def tensor_of(member: Member, op: str, array: Array, what: str = "input") -> Tensor:
    """Return one array as a torch tensor for reading."""
    return array if type(array) is Tensor else _convert(member, op, lambda: as_torch(array, what=what))


def kind_of(member: Member, op: str, array: Array) -> FromTorch | None:
    """Return a function that converts a result to the kind of ``array``; raise an error if there is none."""
    return _convert(member, op, lambda: like(array))


def parts_of(member: Member, op: str, parts: Array, what: str = "input", *, joined: bool = False) -> Parts:
    """Return one part per rank: a rank-leading array, or a list or tuple of ``size`` arrays like each other.

    With ``joined``, also accept an array of parts end to end along axis 0, and return it as a rank-leading view.
    """
    if not isinstance(parts, list | tuple):
        stacked = tensor_of(member, op, parts, what)
        refuse_kind(member, op, stacked)
        if joined and stacked.dim() > 0 and stacked.shape[0] != member.size and stacked.shape[0] % member.size == 0:
            return split(stacked, member.size)
        if stacked.dim() == 0 or stacked.shape[0] != member.size:
            expected = f"({member.size}, ...), one part per rank"
            raise ArgumentValueError(error_text(member, op, f"{what}'s shape", tuple(stacked.shape), expected))
        return stacked
    tensors = [tensor_of(member, op, part, f"{what}[{index}]") for index, part in enumerate(parts)]
    require_length(member, op, tensors, what)
    _require_alike(member, op, tensors, what)
    for tensor in tensors:
        refuse_kind(member, op, tensor)
    return tensors


def output_of(
    member: Member,
    op: str,
    out: Array,
    shape: Sequence[int],
    like: Tensor,
    *,
    joined: bool = False,
    may_overlap: bool = False,
) -> Target:
    """Return ``out`` as the target of one tensor with this shape, and with the dtype and device of ``like``.

    With ``joined``, the shape is rank-leading, and the parts may lie end to end along axis 0 instead. With
    ``may_overlap``, elements may share memory if elements that do so receive the same value.
    """
    if out is like and _is_writable_input(like) and like.shape == shape:
        own = like.detach() if like.requires_grad else like
        return Target(own, own)
    own = own_memory_of(member, op, out, may_overlap)
    if own.dim() == len(shape) - 1 and tuple(own.shape) == (shape[0] * shape[1], *shape[2:]):
        own = own.view(tuple(shape)) if joined else own
    _require_fit(member, op, own, shape, like, "output")
    own = own.detach()
    if may_overlap and shares_elements(own):
        return Target(torch.empty(own.shape, dtype=own.dtype, device=own.device), own, partial(_clash, member, op, own))
    return Target(_writable(own), own)


def _is_writable_input(tensor: Tensor) -> bool:
    """Return whether a tensor that was validated as an input may be written in place."""
    is_own = type(tensor) is Tensor and tensor.is_contiguous() and not tensor.is_inference()
    return is_own and not (tensor.is_conj() or tensor.is_neg() or tensor._is_zerotensor())


def _clash(member: Member, op: str, own: Tensor) -> None:
    got = f"shape {tuple(own.shape)}, stride {own.stride()}"
    expected = "one value for all elements that share memory: the same strides on every rank, or a tensor of its own"
    raise ArgumentValueError(error_text(member, op, "output", got, expected))


def outputs_of(member: Member, op: str, out: Array, shapes: Sequence[Shape] | None, like: Tensor) -> Target:
    """Return ``out`` as the target of one part per rank: rank-leading, or a list. ``shapes=None`` accepts any shape."""
    if not isinstance(out, list | tuple):
        shape = shapes[0] if shapes else tuple(like.shape)
        return output_of(member, op, out, (member.size, *shape), like, joined=True)
    own = [_convert(member, op, lambda part=part: as_output(part)) for part in out]  # type: ignore[misc]
    require_length(member, op, own, "output")
    for index, part in enumerate(own):
        shape = shapes[index] if shapes is not None else like.shape if index == member.rank else part.shape
        _require_fit(member, op, part, shape, like, f"output[{index}]")
    require_apart(member, op, own)
    own = [part.detach() for part in own]
    return Target([_writable(part) for part in own], own)


def rank_of(member: Member, op: str, what: str, rank: object) -> int:
    """Return a rank of the group."""
    number = _int_of(member, op, what, rank)
    if not 0 <= number < member.size:
        raise ArgumentIndexError(error_text(member, op, what, number, f"from 0 to {member.size - 1}"))
    return number


def tag_of(member: Member, op: str, tag: object) -> int:
    """Return a message's tag."""
    number = _int_of(member, op, "tag", tag)
    if not 0 <= number < TAGS:
        raise ArgumentValueError(error_text(member, op, "tag", number, f"from 0 to {TAGS - 1}"))
    return number


def reduce_op_of(member: Member, op: str, reduce_op: object, dtype: torch.dtype) -> tuple[str, float | None]:
    """Return the reduce operation's name and, for premul_sum, its factor."""
    name, factor = reduce_op if isinstance(reduce_op, tuple) and len(reduce_op) == 2 else (reduce_op, None)
    number = isinstance(factor, float | int) and not isinstance(factor, bool)
    fitting = number if name == "premul_sum" else factor is None
    if not isinstance(name, str) or name not in REDUCE_OPS or not fitting:
        expected = f'one of {", ".join(REDUCE_OPS[:-1])} or ("premul_sum", factor)'
        raise ArgumentValueError(error_text(member, op, "reduce op", repr(reduce_op), expected))
    lacking = undefined_for(name, dtype)
    if lacking is not None:
        raise ArgumentValueError(error_text(member, op, "dtype", name_of(dtype), f"one with {lacking}, for op {name}"))
    return name, None if factor is None else _factor_of(member, op, factor, dtype)


def flag_of(member: Member, op: str, what: str, value: object) -> bool:
    """Return True or False from a bool of Python or of an array library."""
    kind = str(getattr(value, "dtype", "")).removeprefix("torch.")
    if isinstance(value, bool) or (kind == "bool" and getattr(value, "shape", None) == ()):
        return bool(value)
    raise ArgumentTypeError(error_text(member, op, what, repr(value), "True or False"))


def awaited_of(
    member: Member, op: str, shapes: Shapes | None, out: Array | None, own: Tensor | None
) -> tuple[Shape, ...]:
    """Return the shape expected from each rank, taken from ``out`` or else ``shapes``; ``()`` if neither was passed.

    ``own`` is this rank's own input, if no later check compares it with the shape that this rank expects.
    """
    awaited = () if shapes is None else _shapes_of(member, op, shapes)
    if out is not None:
        awaited = tuple(tuple(part.shape) for part in listed(parts_of(member, op, out, "output")))
    if awaited and own is not None and awaited[member.rank] != tuple(own.shape):
        what = f"shape of {'shapes' if out is None else 'output'}[{member.rank}]"
        expected = f"{tuple(own.shape)} as input[{member.rank}]"
        raise ArgumentValueError(error_text(member, op, what, awaited[member.rank], expected))
    return awaited


def splits_of(member: Member, op: str, splits: Shapes) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the lengths along axis 0 of an input's parts, and of an output's."""
    expected = "two lists of ints, the lengths of the input's parts and of the output's"
    try:
        lengths = tuple(tuple(map(operator.index, numbers)) for numbers in splits)
    except TypeError as error:
        raise ArgumentTypeError(error_text(member, op, "splits", repr(splits), expected)) from error
    if len(lengths) != 2:
        raise ArgumentValueError(error_text(member, op, "splits", repr(splits), expected))
    return lengths


def cut_of(member: Member, op: str, tensor: Tensor, lengths: Sequence[int], what: str) -> list[Tensor]:
    """Cut a tensor along axis 0 into one part per rank, of these lengths."""
    require_length(member, op, lengths, f"{what} splits")
    rows = tensor.shape[0] if tensor.dim() else 0
    if tensor.dim() == 0 or sum(lengths) != rows or min(lengths) < 0:
        got, expected = list(lengths), f"0 or more, {rows} in all, as the {what}'s axis 0"
        raise ArgumentValueError(error_text(member, op, f"splits of the {what}", got, expected))
    return list(tensor.split(list(lengths)))


def own_memory_of(member: Member, op: str, out: Array, may_overlap: bool = False) -> Tensor:
    """Return ``out`` as a tensor for writing."""
    own = _convert(member, op, lambda: as_output(out, may_overlap=may_overlap))
    if own.is_inference() and not torch.is_inference_mode_enabled():
        expected = "an ordinary one, or the call inside inference mode"
        raise ArgumentValueError(error_text(member, op, "output", "a tensor of torch.inference_mode", expected))
    return own


def readable(tensor: Tensor) -> Tensor:
    """Return the tensor as a transport reads it: detached, contiguous, with no lazy conjugation."""
    tensor = tensor.detach() if tensor.requires_grad else tensor
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    if tensor._is_zerotensor():  # these have no memory
        tensor = tensor.clone()
    return tensor if tensor.is_contiguous() else tensor.contiguous()


def readable_parts(parts: Parts) -> Parts:
    """Return ``readable`` of each rank's part."""
    return readable(parts) if isinstance(parts, Tensor) else [readable(part) for part in parts]


def refuse_kind(member: Member, op: str, tensor: Tensor) -> None:
    """Raise an error unless the tensor is dense and has memory."""
    layout = unsupported(tensor)
    if layout is not None:
        raise ArgumentTypeError(error_text(member, op, "input", layout, DENSE))


def _int_of(member: Member, op: str, what: str, value: object) -> int:
    try:
        return operator.index(str(value) if isinstance(value, bool) else value)  # type: ignore[arg-type]
    except TypeError as error:
        raise ArgumentTypeError(error_text(member, op, what, repr(value), "an int")) from error


def _factor_of(member: Member, op: str, factor: float, dtype: torch.dtype) -> float:
    """Return the factor in float64, which all ranks can compare; refuse an integer's factor that it would round."""
    try:
        number = float(factor)
    except OverflowError as error:
        got = f"an int of {int(factor).bit_length()} bits"
        raise ArgumentValueError(error_text(member, op, "factor", got, "a number that float64 holds")) from error
    counts = not dtype.is_floating_point and not dtype.is_complex
    if counts and not (math.isfinite(number) and number == factor):
        expected = f"a finite number that float64 holds, for {name_of(dtype)}"
        raise ArgumentValueError(error_text(member, op, "factor", factor, expected))
    return number


def _shapes_of(member: Member, op: str, shapes: Shapes) -> tuple[Shape, ...]:
    try:
        lengths = tuple(tuple(operator.index(length) for length in shape) for shape in shapes)
    except TypeError as error:
        expected = f"{member.size} shapes of ints, one per rank"
        raise ArgumentTypeError(error_text(member, op, "shapes", repr(shapes), expected)) from error
    if len(lengths) != member.size:
        raise ArgumentValueError(
            error_text(member, op, "length of shapes", len(lengths), f"{member.size}, one per rank")
        )
    if any(not 0 <= length < 2**63 for shape in lengths for length in shape):
        raise ArgumentValueError(
            error_text(member, op, "shapes", list(lengths), "shapes with lengths from 0 to 2**63 - 1")
        )
    return lengths


def _writable(own: Tensor) -> Tensor:
    if own.is_contiguous() and not own.is_conj() and not own.is_neg():
        return own
    return torch.empty(own.shape, dtype=own.dtype, device=own.device)


def require_length(member: Member, op: str, parts: Sequence[object], what: str) -> None:
    """Raise an error unless the list has one item per rank."""
    if len(parts) != member.size:
        raise ArgumentValueError(
            error_text(member, op, f"length of {what} list", len(parts), f"{member.size}, one per rank")
        )


def _require_alike(member: Member, op: str, parts: Sequence[Tensor], what: str) -> None:
    for index, part in enumerate(parts):
        if part.dtype is not parts[0].dtype:
            expected = f"{name_of(parts[0].dtype)} as {what}[0]"
            raise ArgumentTypeError(error_text(member, op, f"dtype of {what}[{index}]", name_of(part.dtype), expected))
        if part.device != parts[0].device:
            expected = f"{parts[0].device} as {what}[0]"
            raise ArgumentValueError(error_text(member, op, f"device of {what}[{index}]", part.device, expected))


def require_apart(member: Member, op: str, own: Sequence[Tensor]) -> None:
    """Raise an error if outputs share memory."""
    shared = sharing(own)
    if shared is not None:
        got = f"shared with output[{shared[0]}]"
        raise ArgumentValueError(error_text(member, op, f"memory of output[{shared[1]}]", got, "its own"))


def _require_fit(member: Member, op: str, own: Tensor, shape: Sequence[int], like: Tensor, what: str) -> None:
    if own.dtype is not like.dtype:
        got, expected = name_of(own.dtype), f"{name_of(like.dtype)} as the input"
        raise ArgumentTypeError(error_text(member, op, f"dtype of {what}", got, expected))
    if own.device != like.device:
        raise ArgumentValueError(error_text(member, op, f"device of {what}", own.device, f"{like.device} as the input"))
    if tuple(own.shape) != tuple(shape):
        raise ArgumentValueError(error_text(member, op, f"shape of {what}", tuple(own.shape), tuple(shape)))


def _convert(member: Member, op: str, convert: Callable[[], T]) -> T:
    """Run a conversion; if it raises, add the collective and the rank to the error."""
    try:
        return convert()
    except ArgumentError as error:
        raise type(error)(f"{op}: {error} (rank {member.rank} of {member.size})") from error.__cause__
