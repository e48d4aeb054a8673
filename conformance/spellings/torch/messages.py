"""``torch.distributed``'s sends and receives, and its collectives of objects. Ranks are global."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from collshim.conformance.bindings.answers import Handle, Tree
from collshim.conformance.bindings.binding import Binding, blank, root_as
from collshim.conformance.bindings.messages import Neighbours, Ring
from collshim.conformance.bindings.objects import (
    AllGatherObject,
    BroadcastObjects,
    GatherObject,
    RingObjects,
    ScatterObjects,
)
from collshim.conformance.spellings.torch.common import FRAMEWORK, MESSAGES, OBJECTS, PATH


def _blocking(asked: Neighbours) -> Tree:
    send, recv = asked.place.function(PATH + "send"), asked.place.function(PATH + "recv")
    return asked.in_turn(
        lambda: send(asked.given, asked.to, **_within(asked)),
        lambda: recv(asked.buffer, asked.source, **_within(asked)),
    )


def _from_anybody(asked: Neighbours) -> Tree:
    send, recv = asked.place.function(PATH + "send"), asked.place.function(PATH + "recv")
    return asked.in_turn(
        lambda: send(asked.given, asked.to, **_within(asked)), lambda: recv(asked.buffer, **_within(asked))
    )


def _asynchronous(asked: Neighbours) -> Tree:
    isend, irecv = asked.place.function(PATH + "isend"), asked.place.function(PATH + "irecv")
    sent = isend(asked.given, asked.to, **_within(asked))
    return {"send": sent, "recv": irecv(asked.buffer, asked.source, **_within(asked))}


def _among_others(asked: Neighbours) -> Tree:
    """Others are on their way: under another tag to the same rank, sent before and awaited after, and the way back."""
    isend = partial(asked.place.function(PATH + "isend"), **_within(asked))
    irecv = partial(asked.place.function(PATH + "irecv"), **_within(asked))
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
    sends = operation(isend, asked.given, asked.to, **_within(asked))
    recvs = operation(irecv, asked.buffer, asked.source, **_within(asked))
    return asked.place.function(PATH + "batch_isend_irecv")([sends, recvs])


def _within(asked: Neighbours) -> Mapping[str, Any]:
    return {} if asked.group is None else {"group": asked.group}


def _done(received: Any, source: int) -> Tree:
    return {"send": Handle(True), "recv": Handle(True)}


def _three_done(received: Any, source: int) -> Tree:
    return {"send": [Handle(True)] * 3, "recv": [Handle(True)] * 3}


def _source(received: Any, source: int) -> Tree:
    return {"send": None, "recv": source}


def _handles(received: Any, source: int) -> Tree:
    return [Handle(True), Handle(True)]


def _object(name: str, binding: Any, **more: Any) -> Binding:
    return binding(framework=FRAMEWORK, path=PATH + name, admits=OBJECTS, **more)  # type: ignore[no-any-return]


MESSAGES_AND_OBJECTS: tuple[Binding, ...] = (
    Ring(
        framework=FRAMEWORK,
        path=PATH + "send",
        admits=MESSAGES,
        speak=_blocking,
        returns=_source,
        example="""\
x = torch.tensor([1, 2]) + 10 * rank
dist.send(x, 1) if rank == 0 else dist.recv(x, 0)
""",
        notes=(
            ("`recv` returns the sender's rank, and writes into its tensor. Without `src` it takes from anybody."),
            ("A `recv` from the rank itself waits for an `isend` to itself, and without one until the deadline."),
        ),
    ),
    Ring(framework=FRAMEWORK, path=PATH + "recv", form="any", admits=MESSAGES, speak=_from_anybody, returns=_source),
    Ring(framework=FRAMEWORK, path=PATH + "isend", admits=MESSAGES, speak=_asynchronous, returns=_done),
    Ring(
        framework=FRAMEWORK,
        path=PATH + "isend",
        form="tag",
        admits=MESSAGES,
        speak=_among_others,
        returns=_three_done,
        alone="a tag is met by the same tag alone, and other dialects have none",
    ),
    Ring(framework=FRAMEWORK, path=PATH + "batch_isend_irecv", admits=MESSAGES, speak=_batch, returns=_handles),
    _object(
        "all_gather_object",
        AllGatherObject,
        example="""\
outs = [None] * size
dist.all_gather_object(outs, {"rank": rank})
""",
        notes=(
            "Objects are pickled: take them from ranks alone that you trust as you trust your own program.",
            ("`send_object_list` and `recv_object_list` move a list; `recv_object_list` returns the sender's rank."),
        ),
    ),
    _object("gather_object", GatherObject, with_root=root_as("dst")),
    _object("broadcast_object_list", BroadcastObjects, with_root=root_as("src")),
    _object("scatter_object_list", ScatterObjects, with_root=root_as("src")),
    RingObjects(
        framework=FRAMEWORK,
        path=PATH + "send_object_list",
        other=PATH + "recv_object_list",
        admits=replace(OBJECTS, least_size=2),
        received=lambda source: source,
    ),
)
