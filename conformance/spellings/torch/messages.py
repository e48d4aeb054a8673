"""``torch.distributed``'s sends and receives, and its collectives of objects. Ranks are global."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from collshim.conformance.bindings.answers import Handle, Tree
from collshim.conformance.bindings.binding import Binding, blank
from collshim.conformance.bindings.messages import Half, Neighbours, Ring, RingObjects
from collshim.conformance.bindings.objects import OfObjects
from collshim.conformance.spellings.torch.common import FRAMEWORK, MESSAGES, OBJECTS, PATH

_TO = {"tensor": "array", "dst": "rank of another", "group": "optional group", "tag": "tag"}
_FROM = {"tensor": "written but None", "src": "optional rank", "group": "optional group", "tag": "tag"}
_BLOCKING: dict[str, Any] = {"sends": Half("send", _TO), "receives": Half("recv", _FROM)}
_LATER: dict[str, Any] = {"sends": Half("isend", {**_TO, "dst": "rank"}), "receives": Half("irecv", _FROM)}


def _among_others(asked: Neighbours) -> Tree:
    """Send other messages too: with a different tag to the same rank, sent earlier and awaited later, or vice versa."""
    isend = partial(asked.place.function(PATH + "isend"), **asked.within)
    irecv = partial(asked.place.function(PATH + "irecv"), **asked.within)
    others = [blank(asked.case, asked.case.shape) for _ in range(4)]
    sent = [
        isend(others[0], asked.to, tag=4),
        isend(asked.given, asked.to, tag=5),
        isend(others[1], asked.source, tag=5),
    ]
    awaited = [irecv(asked.buffer, asked.source, tag=5), irecv(others[2], asked.source, tag=4)]
    return {"send": sent, "recv": [*awaited, irecv(others[3], asked.to, tag=5)]}


def _batch(asked: Neighbours) -> Tree:
    operation = asked.place.function(PATH + "P2POp")
    isend, irecv = asked.place.function(PATH + "isend"), asked.place.function(PATH + "irecv")
    sends = operation(isend, asked.given, asked.to, **asked.within)
    recvs = operation(irecv, asked.buffer, asked.source, **asked.within)
    return asked.place.function(PATH + "batch_isend_irecv")([sends, recvs])


def _ring(name: str, **more: Any) -> Ring:
    return Ring(framework=FRAMEWORK, path=PATH + name, admits=MESSAGES, **more)


def _object(name: str, collective: str, takes: Mapping[str, str], **more: Any) -> OfObjects:
    parameters = {**takes, "group": "optional group"}
    common: dict[str, Any] = {"framework": FRAMEWORK, "admits": OBJECTS, "result": next(iter(takes)), **more}
    return OfObjects(path=PATH + name, collective=collective, takes=parameters, **common)


MESSAGES_AND_OBJECTS: tuple[Binding, ...] = (
    _ring(
        "send",
        **_BLOCKING,
        returns=lambda received, source: {"send": None, "recv": source},
        example="""\
x = torch.tensor([1, 2]) + 10 * rank
dist.send(x, 1) if rank == 0 else dist.recv(x, 0)
""",
        notes=(
            "`recv` returns the sender's rank, and writes into its tensor. If `src` is None, any rank may send.",
            "If a rank receives from itself, it waits for its own `isend` to itself, or until the deadline.",
        ),
    ),
    _ring(
        "recv",
        form="any",
        sends=_BLOCKING["sends"],
        receives=Half("recv", {"tensor": "written but None"}),
        returns=lambda received, source: {"send": None, "recv": source},
    ),
    _ring(
        "isend",
        **_LATER,
        in_turn=False,
        returns=lambda received, source: {"send": Handle(True), "recv": Handle(True)},
    ),
    _ring(
        "isend",
        **_LATER,
        form="tag",
        speak=_among_others,
        returns=lambda received, source: {"send": [Handle(True)] * 3, "recv": [Handle(True)] * 3},
        alone="a tag matches only the same tag, and other dialects have none",
    ),
    _ring("batch_isend_irecv", **_LATER, speak=_batch, returns=lambda received, source: [Handle(True), Handle(True)]),
    _object(
        "all_gather_object",
        "all_gather_object",
        {"object_list": "list to fill", "obj": "object"},
        example="""\
outs = [None] * size
dist.all_gather_object(outs, {"rank": rank})
""",
        notes=(
            "Objects are pickled: accept them only if you trust the other ranks as you trust your own program.",
            ("`send_object_list` and `recv_object_list` move a list; `recv_object_list` returns the sender's rank."),
        ),
    ),
    _object(
        "gather_object",
        "gather_object",
        {"obj": "object", "object_gather_list": "list to fill, None elsewhere@root", "dst": "root"},
        result="object_gather_list",
    ),
    _object("broadcast_object_list", "broadcast_object", {"object_list": "list to fill with two", "src": "root"}),
    _object(
        "scatter_object_list",
        "scatter_object",
        {
            "scatter_object_output_list": "list to fill with one",
            "scatter_object_input_list": "objects@root",
            "src": "root",
        },
    ),
    RingObjects(
        framework=FRAMEWORK,
        path=PATH + "send_object_list",
        sends=Half("send_object_list", {"object_list": "objects", "dst": "rank of another", "group": "optional group"}),
        receives=Half("recv_object_list", {"object_list": "list", "src": "optional rank", "group": "optional group"}),
        admits=replace(OBJECTS, least_size=2),
        returns=lambda received, source: {"send": None, "recv": source},
    ),
)
