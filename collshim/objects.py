"""Collectives of Python objects: pickled, moved as bytes, unpickled by every receiver.

The ranks tell each other the lengths first, so objects may differ in size, and an object collective that meets one
of arrays is a mismatch on every rank. Unpickling runs code that the sender chose: use these between ranks that trust
each other.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from collshim import arguments as judge
from collshim.errors import ArgumentTypeError, ArgumentValueError, CommunicationError, refusal
from collshim.options import get as current_options
from collshim.work import Work

if TYPE_CHECKING:
    from collshim.communicator import Communicator

_CONTENT = "object"


class ObjectCollectives:
    """The object forms of ``Communicator``'s methods.

    Every receiver holds a copy of its own, made by pickle, its own object included, except that the root of a
    broadcast keeps the very object that it gave. Objects are refused before anything is sent where they cannot be
    pickled (``ArgumentTypeError``) or take more than ``options(object_bytes=...)`` bytes (``ArgumentValueError``);
    one that a receiver cannot unpickle is a ``CommunicationError`` there.
    """

    def all_gather_object(self, value: Any) -> Work[list[Any]]:
        """Every rank holds the list of all ranks' objects."""
        comm, data = _asked(self), _pickled(_asked(self), "all_gather_object", value)
        call = comm._call("all_gather", data, expects=(), discovers=True, content=_CONTENT)
        return comm._post(call, data, None, data, None).then(lambda found: _each(call.name, found))

    def gather_object(self, value: Any, root: int = 0) -> Work[list[Any] | None]:
        """The root holds the list of all ranks' objects; the others get None."""
        comm, data = _asked(self), _pickled(_asked(self), "gather_object", value)
        root = judge.rank_of(comm, "gather_object", "root", root)
        call = comm._call("gather", data, root=root, expects=(), discovers=True, content=_CONTENT)
        work = comm._post(call, data, None, data, None)
        return work.then(lambda found: None if found is None else _each(call.name, found))

    def broadcast_object(self, value: Any = None, root: int = 0) -> Work[Any]:
        """Every rank holds the root's object; what the others give is not looked at."""
        comm = _asked(self)
        root = judge.rank_of(comm, "broadcast_object", "root", root)
        if root != comm.rank:
            return _awaited(comm, "broadcast", root)
        data = _pickled(comm, "broadcast_object", value)
        call = comm._call("broadcast", data, root=root, discovers=True, content=_CONTENT)
        return comm._post(call, data, None, data, None).then(lambda _: value)

    def scatter_object(self, values: Sequence[Any] | None = None, root: int = 0) -> Work[Any]:
        """Rank r holds the r-th of the root's ``size`` objects; what the others give is not looked at."""
        comm = _asked(self)
        root = judge.rank_of(comm, "scatter_object", "root", root)
        if root != comm.rank:
            return _awaited(comm, "scatter", root)
        parts = _pickled_parts(comm, "scatter_object", values)
        call = comm._parted("scatter", parts, root=root, discovers=True, content=_CONTENT)
        return comm._post(call, parts, None, parts[0], None).then(lambda found: _unpickled(call.name, root, found))

    def all_to_all_object(self, values: Sequence[Any]) -> Work[list[Any]]:
        """Rank r holds, in rank order, the r-th object of every rank."""
        comm = _asked(self)
        parts = _pickled_parts(comm, "all_to_all_object", values)
        shapes = tuple((part.numel(),) for part in parts)
        call = comm._call("all_to_all", parts[0], sends=shapes, expects=(), discovers=True, content=_CONTENT)
        work = comm._post(call._replace(shape=None), parts, None, parts[0], None)
        return work.then(lambda found: _each(call.name, found))

    def send_object(self, value: Any, to: int, tag: int = 0) -> Work[None]:
        """Rank ``to`` receives the object."""
        comm, data = _asked(self), _pickled(_asked(self), "send_object", value)
        to = judge.rank_of(comm, "send_object", "destination", to)
        tag = judge.tag_of(comm, "send_object", tag)
        call = comm._call("send", data, root=to, tag=tag, discovers=True, content=_CONTENT)
        return comm._post(call, data, None, None, None)

    def recv_object(self, source: int | None, tag: int = 0) -> Work[Any]:
        """The object that rank ``source`` sends, or with None any rank; ``Work.source`` tells which."""
        comm = _asked(self)
        rank = None if source is None else judge.rank_of(comm, "recv_object", "source", source)
        return _awaited(comm, "recv", rank, tag=judge.tag_of(comm, "recv_object", tag))


def _asked(collectives: ObjectCollectives) -> Communicator:
    """Only ``Communicator`` derives from ``ObjectCollectives``."""
    return cast("Communicator", collectives)


def _awaited(comm: Communicator, op: str, root: int | None, **more: Any) -> Work[Any]:
    call = comm._empty(op, root=root, discovers=True, content=_CONTENT, **more)
    return comm._post(call, None, None, None, None).then(lambda found: _unpickled(call.name, root, found))


def _pickled(comm: Communicator, op: str, value: Any) -> Tensor:
    try:
        data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        text = refusal(op, "object", type(value).__qualname__, f"one that pickle can save ({error})", *_place(comm))
        raise ArgumentTypeError(text) from error
    limit = current_options().object_bytes
    if len(data) > limit:
        wanted = f"at most {limit}, as options(object_bytes=...) says"
        raise ArgumentValueError(refusal(op, "pickled object in bytes", len(data), wanted, *_place(comm)))
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def _pickled_parts(comm: Communicator, op: str, values: Sequence[Any] | None) -> list[Tensor]:
    if not isinstance(values, Sequence) or isinstance(values, str | bytes):
        got, wanted = type(values).__qualname__, "a list with one object per rank"
        raise ArgumentTypeError(refusal(op, "input", got, wanted, *_place(comm)))
    if len(values) != comm.size:
        wanted = f"{comm.size}, one per rank"
        raise ArgumentValueError(refusal(op, "length of input list", len(values), wanted, *_place(comm)))
    return [_pickled(comm, op, value) for value in values]


def _each(op: str, found: Sequence[Tensor]) -> list[Any]:
    return [_unpickled(op, rank, data) for rank, data in enumerate(found)]


def _unpickled(op: str, source: int | None, data: Tensor) -> Any:
    try:
        return pickle.loads(data.numpy().data)
    except Exception as error:
        giver = "the sender" if source is None else f"rank {source}"
        text = f"{op}: the object that {giver} gave cannot be unpickled here: {type(error).__name__}: {error}"
        raise CommunicationError(text) from error


def _place(comm: Communicator) -> tuple[int, int]:
    return comm.rank, comm.size
