"""MindSpore's sends and receives, functional and in place. Ranks are global."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from collshim.conformance.bindings.answers import Handle, Shaped, Tree
from collshim.conformance.bindings.binding import Binding
from collshim.conformance.bindings.messages import Half, Neighbours, Ring
from collshim.conformance.dtypes import name_of
from collshim.conformance.spellings.mindspore.common import FRAMEWORK, MESSAGES
from collshim.conformance.spellings.mindspore.functional import COMM_FUNC


def _halves(send: str, recv: str, group: str) -> dict[str, Any]:
    to = {"tensor": "array", "dst": "rank", "group": group, "tag": "tag"}
    source = {"tensor": "array", "src": "rank", "group": group, "tag": "tag"}
    return {"sends": Half(send, to), "receives": Half(recv, source)}


_BLOCKING, _LATER = _halves("send", "recv", "group"), _halves("isend", "irecv", "group")


def _batch(path: str) -> Callable[[Neighbours], Tree]:
    def speak(asked: Neighbours) -> Tree:
        operation = asked.place.function(path + "P2POp")
        sends = operation("isend", asked.given, asked.to, **asked.within)
        recvs = operation("irecv", asked.buffer, asked.source, **asked.within)
        return asked.place.function(path + "batch_isend_irecv")([sends, recvs])

    return speak


def _value_and_handle(received: Any, source: int) -> Tree:
    return {"send": Handle(), "recv": (received, Handle())}


def _ring(path: str, **more: Any) -> Ring:
    return Ring(framework=FRAMEWORK, path=path, admits=MESSAGES, **more)


_COMM_FUNC = f"mindspore.{COMM_FUNC}."
FUNCTIONAL_MESSAGES: tuple[Binding, ...] = (
    _ring(
        _COMM_FUNC + "send",
        **_BLOCKING,
        returns=lambda received, source: {"send": None, "recv": received},
        fills=False,
        example="""\
x = ms.Tensor([1, 2]) + 10 * rank
comm_func.send(x, 1) if rank == 0 else comm_func.recv(x, 0)
""",
        notes=(
            "`recv` returns the message; the tensor passed to it only specifies shape and dtype, and is not written.",
            "`isend` and `irecv` return handles; `irecv` returns `(tensor, handle)`.",
            ("In a group, ranks of messages are numbered in sorted order, whatever the group's order."),
        ),
    ),
    _ring(_COMM_FUNC + "isend", **_LATER, in_turn=False, returns=_value_and_handle, fills=False),
    _ring(
        _COMM_FUNC + "batch_isend_irecv",
        **_LATER,
        speak=_batch(_COMM_FUNC),
        returns=lambda received, source: (Shaped((), name_of(received.dtype)), received),
        fills=False,
    ),
)


def messages_in_place(path: str) -> tuple[Binding, ...]:
    """Return the spellings of messages in place: ``recv`` fills its tensor and returns 0; a batch has one handle."""
    handles = {"send": Handle(), "recv": Handle()}
    blocking, later = (_halves(*names, "optional group") for names in (("send", "recv"), ("isend", "irecv")))
    return (
        _ring(path + "send", **blocking, returns=lambda received, source: {"send": None, "recv": 0}),
        _ring(path + "isend", **later, in_turn=False, returns=lambda received, source: handles),
        _ring(path + "batch_isend_irecv", **later, speak=_batch(path), returns=lambda received, source: [Handle()]),
    )
