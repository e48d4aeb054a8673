"""MindSpore's sends and receives, functional and in place. Ranks are global."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from collshim.conformance.bindings.answers import Handle, Shaped, Tree
from collshim.conformance.bindings.binding import Binding
from collshim.conformance.bindings.messages import Neighbours, Ring
from collshim.conformance.spellings.mindspore.common import FRAMEWORK, MESSAGES, within
from collshim.conformance.spellings.mindspore.functional import COMM_FUNC


def _blocking(path: str) -> Callable[[Neighbours], Tree]:
    def speak(asked: Neighbours) -> Tree:
        send, recv = asked.place.function(path + "send"), asked.place.function(path + "recv")
        return asked.in_turn(
            lambda: send(asked.given, asked.to, **within(asked.group)),
            lambda: recv(asked.buffer, asked.source, **within(asked.group)),
        )

    return speak


def _asynchronous(path: str) -> Callable[[Neighbours], Tree]:
    def speak(asked: Neighbours) -> Tree:
        isend, irecv = asked.place.function(path + "isend"), asked.place.function(path + "irecv")
        sent = isend(asked.given, asked.to, **within(asked.group))
        return {"send": sent, "recv": irecv(asked.buffer, asked.source, **within(asked.group))}

    return speak


def _batch(path: str) -> Callable[[Neighbours], Tree]:
    def speak(asked: Neighbours) -> Tree:
        operation = asked.place.function(path + "P2POp")
        sends = operation("isend", asked.given, asked.to, **within(asked.group))
        recvs = operation("irecv", asked.buffer, asked.source, **within(asked.group))
        return asked.place.function(path + "batch_isend_irecv")([sends, recvs])

    return speak


def _zero(received: Any, source: int) -> Tree:
    return {"send": None, "recv": 0}


def _value(received: Any, source: int) -> Tree:
    return {"send": None, "recv": received}


def _value_and_handle(received: Any, source: int) -> Tree:
    return {"send": Handle(), "recv": (received, Handle())}


def _two_handles(received: Any, source: int) -> Tree:
    return {"send": Handle(), "recv": Handle()}


def _values(received: Any, source: int) -> Tree:
    return (Shaped((), str(received.dtype)), received)


def _one_handle(received: Any, source: int) -> Tree:
    return [Handle()]


def _ring(path: str, name: str, speak: Any, returns: Callable[[Any, int], Tree], **more: Any) -> Binding:
    return Ring(framework=FRAMEWORK, path=path + name, admits=MESSAGES, speak=speak(path), returns=returns, **more)


_COMM_FUNC = f"mindspore.{COMM_FUNC}."
FUNCTIONAL_MESSAGES: tuple[Binding, ...] = (
    _ring(
        _COMM_FUNC,
        "send",
        _blocking,
        _value,
        fills=False,
        example="""\
x = ms.Tensor([1, 2]) + 10 * rank
comm_func.send(x, 1) if rank == 0 else comm_func.recv(x, 0)
""",
        notes=(
            "`recv` returns what came; its tensor only tells shape and dtype, and is not written.",
            "`isend` and `irecv` return handles; `irecv` returns `(tensor, handle)`.",
            ("In a group the ranks that exchange messages are numbered in sorted order, whatever the group's order."),
        ),
    ),
    _ring(_COMM_FUNC, "isend", _asynchronous, _value_and_handle, fills=False),
    _ring(_COMM_FUNC, "batch_isend_irecv", _batch, _values, fills=False),
)


def messages_in_place(path: str) -> tuple[Binding, ...]:
    """``recv`` writes into its tensor and returns 0; a batch has one handle."""
    return (
        _ring(path, "send", _blocking, _zero),
        _ring(path, "isend", _asynchronous, _two_handles),
        _ring(path, "batch_isend_irecv", _batch, _one_handle),
    )
