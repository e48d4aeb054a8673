"""Check whether the ranks' calls agree, and build the error if they do not."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from collshim.calls.call import Call, in_the_world, name_of
from collshim.calls.collective import Shape
from collshim.errors import CommunicationError, MismatchError, NotANumberError

_EVERY_RANK_ALIKE = ("collective", "content", "reduce_op", "factor", "root", "dtype", "device")
_NAMES = {"collective": "op", "reduce_op": "reduce op"}


def objection(calls: Sequence[Call], ranks: Sequence[int]) -> CommunicationError | None:
    """Return the error that prevents the calls of a group's ranks from running together; None if the calls agree.

    ``calls`` are in rank order. ``ranks`` are the ranks' numbers in the world.
    """
    mismatch = disagreement(calls)
    if mismatch is not None:
        return MismatchError(_with_note(mismatch, ranks))
    finds = [f"rank {rank} has NaN: {call.nan}" for rank, call in enumerate(calls) if call.nan]
    if not finds:
        return None
    return NotANumberError(_with_note("\n".join([f"{calls[0].name}: {'; '.join(finds)}", *_lines(calls)]), ranks))


def _with_note(text: str, ranks: Sequence[int]) -> str:
    first, line, rest = text.partition("\n")
    return f"{first}{in_the_world(ranks)}{line}{rest}"


def disagreement(calls: Sequence[Call]) -> str | None:
    """Describe how the calls of a group's ranks, in rank order, disagree; None if they agree.

    The text names the field and the ranks in the minority (all ranks if there is no minority), and shows every rank's
    call.
    """
    signatures = {signature(call) for call in calls}
    if len(signatures) == 1 and None not in signatures:
        return None
    mismatch = _unequal_field(calls) or _unequal_shapes(calls) or _unmet_shape(calls)
    return None if mismatch is None else "\n".join([mismatch, *_lines(calls)])


def signature(call: Call) -> tuple[object, ...] | None:
    """Return a value that is equal for calls that agree without a closer look; None for a call that needs one."""
    if (call.sends is not None or call.expects) and not call.is_uniform:
        return None
    return (*call[:9], call.content)


def _unequal_field(calls: Sequence[Call]) -> str | None:
    for field in _EVERY_RANK_ALIKE:
        values = {rank: _value(call, field) for rank, call in enumerate(calls) if _has(call, field)}
        if len(set(values.values())) > 1:
            return f"{calls[0].name}: ranks disagree on {_NAMES.get(field, field)}: {_minority(values)}"
    return None


def unlike_sites(calls: Sequence[Call], ranks: Sequence[int]) -> str | None:
    """Describe the different lines of the program that made the calls; None if the same line made them all."""
    sites = {rank: call.site for rank, call in enumerate(calls)}
    if len(set(sites.values())) == 1:
        return None
    return _with_note(f"{calls[0].name}: the ranks call it from different lines: {_minority(sites)}", ranks)


def _value(call: Call, field: str) -> str:
    return call.name if field == "collective" else str(getattr(call, field)).removeprefix("torch.")


def _has(call: Call, field: str) -> bool:
    """Return whether the call sets the field: a rank without a tensor leaves dtype and device to the others."""
    return not (field == "dtype" and call.dtype is None) and not (field == "device" and call.device == "any")


def _minority(values: Mapping[int, object]) -> str:
    counts = Counter(values.values()).most_common()
    tie = len(counts) > 1 and counts[0][1] == counts[1][1]
    minority = [rank for rank, value in values.items() if tie or value != counts[0][0]]
    text = ", ".join(f"rank {rank} has {values[rank]}" for rank in minority)
    return text if tie else f"{text}, the others {counts[0][0]}"


def _unequal_shapes(calls: Sequence[Call]) -> str | None:
    """Check that a reduction's inputs have the same shapes on all ranks: it combines them element by element.

    If each rank passes one tensor, dimensions of length 1 are ignored, because programs add numbers to arrays of one
    element.
    """
    collective = calls[0].collective
    if not collective.reduces:
        return None
    shapes: list[object] = [call.shape for call in calls]
    if collective.gives == "parts":
        shapes = [call.sends if call.sends is not None else (call.shape,) * len(calls) for call in calls]
    elif len({None if call.shape is None else _without_ones(call.shape) for call in calls}) == 1:
        return None
    if all(shape == shapes[0] for shape in shapes):
        return None
    return f"{calls[0].name}: ranks disagree on shape: {_minority(dict(enumerate(shapes)))}"


def _unmet_shape(calls: Sequence[Call]) -> str | None:
    """Check that each receiver expects the shape that its sender sends, if data moves between ranks unchanged."""
    collective = calls[0].collective
    is_whole = collective.gives == collective.gets == "tensor"
    for sender, receiver in collective.routes(calls[0].root or 0, len(calls)):
        sent, awaited = calls[sender].sent(receiver), calls[receiver].expected(sender)
        if awaited is not None and sent != awaited:
            if is_whole and sent is not None and _without_ones(sent) == _without_ones(awaited):
                continue
            return _unmet(calls, sender, receiver, sent, awaited)
    return None


def _unmet(calls: Sequence[Call], sender: int, receiver: int, sent: Shape | None, awaited: Shape) -> str:
    gathers = calls[0].collective.gives == "tensor" and calls[0].collective.gets == "parts"
    if gathers and all(call.expects is None for call in calls):
        shapes = {rank: call.shape for rank, call in enumerate(calls)}
        return f"{calls[0].name}: ranks disagree on shape: {_minority(shapes)}"
    return f"{calls[0].name}: rank {sender} sends rank {receiver} shape {sent}, rank {receiver} expects {awaited}"


def _lines(calls: Sequence[Call]) -> list[str]:
    return [f"  rank {rank}: {call}" for rank, call in enumerate(calls)]


def _without_ones(shape: Shape) -> Shape:
    return tuple(length for length in shape if length != 1)


def _fills(sent: Shape, awaited: Shape) -> bool:
    """Return whether a message of one shape fits a second one: except for 1s they agree, or one of them is flat.

    Programs send a flat buffer and receive it in its original shape, or send a number and receive it as an array of one
    element. Gloo and NCCL compare only sizes, so with them a (2, 3) would also arrive as a (3, 2), which is a mistake.
    """
    if sent == awaited:
        return True
    is_flat = len(sent) == 1 or len(awaited) == 1
    return _without_ones(sent) == _without_ones(awaited) or (is_flat and math.prod(sent) == math.prod(awaited))


def objection_to_pair(send: Call, recv: Call, ranks: Sequence[int]) -> CommunicationError | None:
    """Return the error that prevents a send and its matching recv from running; None if they agree."""
    if recv.content != send.content:
        text = f"recv: the receiver expects an {recv.content or 'array'}, the sender sends an {send.content or 'array'}"
    elif recv.dtype is not None and send.dtype is not recv.dtype:
        dtype = None if send.dtype is None else name_of(send.dtype)
        text = f"recv: the receiver expects dtype {name_of(recv.dtype)}, the sender sends {dtype}"
    elif "any" not in (send.device, recv.device) and send.device != recv.device:
        text = f"recv: the receiver expects device {recv.device}, the sender sends {send.device}"
    elif recv.shape is not None and not _fills(send.shape or (), recv.shape):
        text = f"recv: the receiver expects shape {recv.shape}, the sender sends {send.shape}"
    else:
        return None
    return MismatchError(_with_note(f"{text}\n  sender: {send}\n  receiver: {recv}", ranks))
