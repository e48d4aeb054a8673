"""Whether the ranks' calls belong together, and what is said when they do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from collshim.call import Call, Shape, in_the_world, name_of
from collshim.errors import CommunicationError, MismatchError, NotANumberError

_EVERY_RANK_ALIKE = ("op", "content", "reduce_op", "factor", "root", "dtype", "device")
_ROOTED = {"reduce", "broadcast", "gather", "scatter"}
_REDUCTIONS = {"all_reduce", "reduce", "reduce_scatter"}


def objection(calls: Sequence[Call], ranks: Sequence[int]) -> CommunicationError | None:
    """Why the calls of a group's ranks, in rank order, cannot be carried out together; None where they can.

    ``ranks`` are their numbers in the world.
    """
    wrong = disagreement(calls)
    if wrong is not None:
        return MismatchError(_with_note(wrong, ranks))
    found = [f"rank {rank} gives NaN: {call.nan}" for rank, call in enumerate(calls) if call.nan]
    if not found:
        return None
    return NotANumberError(_with_note("\n".join([f"{calls[0].name}: {'; '.join(found)}", *_shown(calls)]), ranks))


def _with_note(text: str, ranks: Sequence[int]) -> str:
    first, line, rest = text.partition("\n")
    return f"{first}{in_the_world(ranks)}{line}{rest}"


def disagreement(calls: Sequence[Call]) -> str | None:
    """What is wrong among the calls of a group's ranks, in rank order; None where they agree.

    The text names the field, the ranks in the minority (all of them in a tie) and shows every rank's call.
    """
    first = calls[0]
    if all(_alike(call, first) for call in calls):
        return None
    wrong = _unequal_field(calls) or _unequal_shapes(calls) or _unmet_shape(calls)
    return None if wrong is None else "\n".join([wrong, *_shown(calls)])


def _alike(call: Call, first: Call) -> bool:
    return call.sends is None and not call.expects and call[:9] == first[:9] and call.content == first.content


def _unequal_field(calls: Sequence[Call]) -> str | None:
    for field in _EVERY_RANK_ALIKE:
        told = {rank: _told(call, field) for rank, call in enumerate(calls) if _tells(call, field)}
        if len(set(told.values())) > 1:
            return f"{calls[0].name}: ranks disagree on {field.replace('_', ' ')}: {_minority(told)}"
    return None


def _told(call: Call, field: str) -> str:
    return call.name if field == "op" else str(getattr(call, field)).removeprefix("torch.")


def _tells(call: Call, field: str) -> bool:
    """A rank that gives nothing of its own leaves dtype and device to the others."""
    return not (field == "dtype" and call.dtype is None) and not (field == "device" and call.device == "any")


def _minority(values: Mapping[int, object]) -> str:
    counts = Counter(values.values()).most_common()
    tie = len(counts) > 1 and counts[0][1] == counts[1][1]
    blamed = [rank for rank, value in values.items() if tie or value != counts[0][0]]
    shown = ", ".join(f"rank {rank} has {values[rank]}" for rank in blamed)
    return shown if tie else f"{shown}, the others {counts[0][0]}"


def _unequal_shapes(calls: Sequence[Call]) -> str | None:
    """Reductions combine element by element: every rank gives the same shapes."""
    if calls[0].op not in _REDUCTIONS:
        return None
    shapes: list[object] = [call.sends if call.sends is not None else (call.shape,) * len(calls) for call in calls]
    if calls[0].op != "reduce_scatter":
        shapes = [call.shape for call in calls]
    if all(shape == shapes[0] for shape in shapes):
        return None
    return f"{calls[0].name}: ranks disagree on shape: {_minority(dict(enumerate(shapes)))}"


def _unmet_shape(calls: Sequence[Call]) -> str | None:
    """Where data moves from one rank to another, the receiver awaits what the sender gives."""
    for sender, receiver in _routes(calls):
        sent, expected = calls[sender].sent(receiver), calls[receiver].expected(sender)
        if expected is not None and sent != expected:
            return _unmet(calls, sender, receiver, sent, expected)
    return None


def _unmet(calls: Sequence[Call], sender: int, receiver: int, sent: Shape | None, expected: Shape) -> str:
    if calls[0].op in ("all_gather", "gather") and all(call.expects is None for call in calls):
        shapes = {rank: call.shape for rank, call in enumerate(calls)}
        return f"{calls[0].name}: ranks disagree on shape: {_minority(shapes)}"
    return f"{calls[0].name}: rank {sender} gives rank {receiver} shape {sent}, rank {receiver} awaits {expected}"


def _routes(calls: Sequence[Call]) -> list[tuple[int, int]]:
    op, root, everybody = calls[0].op, calls[0].root or 0, range(len(calls))
    if op in ("broadcast", "scatter"):
        return [(root, receiver) for receiver in everybody]
    if op == "gather":
        return [(sender, root) for sender in everybody]
    if op in ("all_gather", "all_to_all"):
        return [(sender, receiver) for receiver in everybody for sender in everybody]
    return [(0, 1)] if op == "send" else []


def _shown(calls: Sequence[Call]) -> list[str]:
    return [f"  rank {rank}: {call}" for rank, call in enumerate(calls)]


def unmatched_pair(send: Call, recv: Call) -> str | None:
    """What is wrong between a send and the recv that it meets; None where they fit."""
    if recv.content != send.content:
        wrong = f"recv: the receiver awaits an {recv.content or 'array'}, the sender gives an {send.content or 'array'}"
    elif recv.dtype is not None and send.dtype is not recv.dtype:
        sent = None if send.dtype is None else name_of(send.dtype)
        wrong = f"recv: dtype awaited is {name_of(recv.dtype)}, the sender gives {sent}"
    elif "any" not in (send.device, recv.device) and send.device != recv.device:
        wrong = f"recv: device awaited is {recv.device}, the sender gives {send.device}"
    elif recv.shape is not None and send.shape != recv.shape:
        wrong = f"recv: shape awaited is {recv.shape}, the sender gives {send.shape}"
    else:
        return None
    return f"{wrong}\n  sender: {send}\n  receiver: {recv}"


def objection_to_pair(send: Call, recv: Call, ranks: Sequence[int]) -> CommunicationError | None:
    """Why a send and the recv that it meets cannot be carried out; None where they can."""
    wrong = unmatched_pair(send, recv)
    return None if wrong is None else MismatchError(_with_note(wrong, ranks))
