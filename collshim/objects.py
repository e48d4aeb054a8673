"""Collectives of Python objects: pickled, moved as bytes, unpickled by every receiver.

The ranks exchange the lengths first, so objects may differ in size. If some ranks call an object collective and others
a collective of arrays, every rank raises a MismatchError. Unpickling can run code that the sender chose: use object
collectives only between ranks that trust each other, or with ``options(objects="safe")``. ``options(objects="refuse")``
refuses all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from collshim.arrays.pickling import packed, restored
from collshim.calls import validation
from collshim.calls.call import Call
from collshim.calls.collective import ALL_GATHER, ALL_TO_ALL, BROADCAST, GATHER, RECV, SCATTER, SEND, Collective
from collshim.errors import ArgumentTypeError, ArgumentValueError, CommunicationError, described, text_of
from collshim.layout import shapes_of
from collshim.posting import Posting
from collshim.settings import get as current_options
from collshim.work import Work

_CONTENT = "object"


class ObjectCollectives(Posting):
    """The object forms of ``Communicator``'s methods.

    Every rank receives copies made by pickle, even of its own object; only the root of a broadcast keeps its own
    object. An object is refused, before anything is sent, if it cannot be pickled (``ArgumentTypeError``) or takes more
    than ``options(object_bytes=...)`` bytes (``ArgumentValueError``). A receiver that cannot unpickle an object raises
    a ``CommunicationError``.
    """

    def all_gather_object(self, value: object) -> Work[list[Any]]:
        """Gather all ranks' objects on every rank, as a list.

        Examples:
            >>> ranks(lambda comm: comm.all_gather_object({"rank": comm.rank}).wait())[0]
            [{'rank': 0}, {'rank': 1}]
        """
        data = self._pickled("all_gather_object", value)
        call = self._call(ALL_GATHER, data, expects=(), discovers=True, content=_CONTENT)
        return self._post(call, data, None, data, None).then(_parts_of(call))

    def gather_object(self, value: object, root: int = 0) -> Work[list[Any] | None]:
        """Gather all ranks' objects on the root, as a list; the other ranks receive None.

        Examples:
            >>> ranks(lambda comm: comm.gather_object(comm.rank).wait())
            [[0, 1], None]
        """
        data = self._pickled("gather_object", value)
        root = validation.rank_of(self, "gather_object", "root", root)
        call = self._call(GATHER, data, root=root, expects=(), discovers=True, content=_CONTENT)
        kind, work = current_options().objects, self._post(call, data, None, data, None)
        return work.then(lambda parts: None if parts is None else _unpickled_parts(call.name, kind, parts))

    def broadcast_object(self, value: object = None, root: int = 0) -> Work[Any]:
        """Send the root's object to every rank; the other ranks' ``value`` is ignored.

        Examples:
            >>> ranks(lambda comm: comm.broadcast_object("settings" if comm.rank == 0 else None).wait())
            ['settings', 'settings']
        """
        root = validation.rank_of(self, "broadcast_object", "root", root)
        if root != self.rank:
            return self._post_awaiting(BROADCAST, root)
        data = self._pickled("broadcast_object", value)
        call = self._call(BROADCAST, data, root=root, discovers=True, content=_CONTENT)
        return self._post(call, data, None, data, None).then(lambda _: value)

    def scatter_object(self, values: Sequence[object] | None = None, root: int = 0) -> Work[Any]:
        """Send the r-th of the root's ``size`` objects to rank r; the other ranks' ``values`` are ignored.

        Examples:
            >>> ranks(lambda comm: comm.scatter_object(["a", "b"]).wait())
            ['a', 'b']
        """
        root = validation.rank_of(self, "scatter_object", "root", root)
        if root != self.rank:
            return self._post_awaiting(SCATTER, root)
        parts = self._pickled_parts("scatter_object", values)
        call = self._parted_call(SCATTER, parts, root=root, discovers=True, content=_CONTENT)
        return self._post(call, parts, None, parts[0], None).then(_one_of(call))

    def all_to_all_object(self, values: Sequence[object]) -> Work[list[Any]]:
        """Send the r-th object of every rank to rank r, which receives the objects in rank order.

        Examples:
            >>> ranks(lambda comm: comm.all_to_all_object([f"{comm.rank} to {peer}" for peer in range(2)]).wait())
            [['0 to 0', '1 to 0'], ['0 to 1', '1 to 1']]
        """
        parts = self._pickled_parts("all_to_all_object", values)
        sends = shapes_of(parts)
        call = self._call(ALL_TO_ALL, parts[0], sends=sends, expects=(), discovers=True, content=_CONTENT)
        work = self._post(call._replace(shape=None), parts, None, parts[0], None)
        return work.then(_parts_of(call))

    def send_object(self, value: object, to: int, tag: int = 0) -> Work[None]:
        """Send the object to rank ``to``."""
        data = self._pickled("send_object", value)
        to = validation.rank_of(self, "send_object", "destination", to)
        tag = validation.tag_of(self, "send_object", tag)
        call = self._call(SEND, data, root=to, tag=tag, discovers=True, content=_CONTENT)
        return self._post(call, data, None, None, None)

    def recv_object(self, source: int | None, tag: int = 0) -> Work[Any]:
        """Receive an object from rank ``source``, or from any rank if it is None; ``Work.source`` is the sender."""
        rank = None if source is None else validation.rank_of(self, "recv_object", "source", source)
        return self._post_awaiting(RECV, rank, tag=validation.tag_of(self, "recv_object", tag))

    def _post_awaiting(self, collective: Collective, root: int | None, tag: int = 0) -> Work[Any]:
        """Post the call of a rank that receives only."""
        self._require_objects(f"{collective.name}_object")
        call = Call(collective, root=root, discovers=True, content=_CONTENT, tag=tag)
        return self._post(call, None, None, None, None).then(_one_of(call))

    def _require_objects(self, op: str) -> None:
        if current_options().objects == "refuse":
            expected = "arrays alone, as options(objects='refuse') says"
            raise ArgumentValueError(validation.error_text(self, op, "input", "an object", expected))

    def _pickled(self, op: str, value: object) -> Tensor:
        self._require_objects(op)
        try:
            data = packed(value)
        except Exception as error:
            expected = f"one that pickle can save ({text_of(error)})"
            text = validation.error_text(self, op, "object", type(value).__qualname__, expected)
            raise ArgumentTypeError(text) from error
        limit = current_options().object_bytes
        if len(data) > limit:
            expected = f"at most {limit}, as options(object_bytes=...) says"
            raise ArgumentValueError(validation.error_text(self, op, "pickled object in bytes", len(data), expected))
        return torch.frombuffer(data, dtype=torch.uint8)

    def _pickled_parts(self, op: str, values: Sequence[object] | None) -> list[Tensor]:
        if not isinstance(values, Sequence) or isinstance(values, str | bytes):
            got, expected = type(values).__qualname__, "a list with one object per rank"
            raise ArgumentTypeError(validation.error_text(self, op, "input", got, expected))
        validation.require_length(self, op, values, "input")
        return [self._pickled(op, value) for value in values]


def _parts_of(call: Call) -> Callable[[Sequence[Tensor]], list[Any]]:
    return partial(_unpickled_parts, call.name, current_options().objects)


def _one_of(call: Call) -> Callable[[Tensor], Any]:
    return partial(_unpickled, call.name, current_options().objects, call.root)


def _unpickled_parts(op: str, objects: str, parts: Sequence[Tensor]) -> list[Any]:
    return [_unpickled(op, objects, rank, data) for rank, data in enumerate(parts)]


def _unpickled(op: str, objects: str, source: int | None, data: Tensor) -> Any:
    try:
        return restored(data.numpy().data, safely=objects == "safe")
    except Exception as error:
        giver = "the sender" if source is None else f"rank {source}"
        text = f"{op}: the object that {giver} gave cannot be unpickled here: {described(error)}"
        raise CommunicationError(text) from error
