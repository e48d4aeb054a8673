"""send, recv and batches of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from collshim import arguments as judge
from collshim.errors import ArgumentTypeError, refusal
from collshim.work import Work

if TYPE_CHECKING:
    from collshim.communicator import Communicator

Post = Callable[[], Work[Any]]


class Send(NamedTuple):
    """One send of ``Communicator.batch``, with the arguments of ``Communicator.send``."""

    array: Any
    to: int
    tag: int = 0
    discovers: bool = False


class Recv(NamedTuple):
    """One recv of ``Communicator.batch``, with the arguments of ``Communicator.recv``."""

    source: int | None
    out: Any = None
    tag: int = 0
    like: Any = None
    discovers: bool = False


class PointToPointCalls:
    """``Communicator``'s methods between two ranks."""

    def send(self, array: Any, to: int, tag: int = 0, *, discovers: bool = False) -> Work[None]:
        """Rank ``to`` receives the array; complete at once for small ones, else when the receiver has come."""
        return _judged_send(cast("Communicator", self), Send(array, to, tag, discovers))()

    def recv(
        self, source: int | None, *, out: Any = None, tag: int = 0, like: Any = None, discovers: bool = False
    ) -> Work[Any]:
        """The array that rank ``source`` sends, or with None any rank; ``out`` and ``like`` tell what is awaited.

        With neither, shape and dtype are the sender's: with the check on, or ``discovers`` on both ranks. After the
        wait ``Work.source`` tells who sent it.
        """
        return _judged_recv(cast("Communicator", self), Recv(source, out, tag, like, discovers))()

    def batch(self, letters: Sequence[Send | Recv]) -> list[Work[Any]]:
        """Post sends and receives together, one work each; none is sent where one is refused.

        What is posted one by one may wait for one another on NCCL; what is posted together does not.
        """
        comm = cast("Communicator", self)
        posts = [_judged(comm, each) for each in _listed(comm, letters)]
        with comm._transport.together():
            return [post() for post in posts]


def _listed(comm: Communicator, letters: Any) -> list[Any]:
    if not isinstance(letters, Iterable):
        got, wanted = type(letters).__qualname__, "a list of Send and Recv"
        raise ArgumentTypeError(refusal("batch", "list of letters", got, wanted, comm.rank, comm.size))
    return list(letters)


def _judged(comm: Communicator, letter: Any) -> Post:
    if isinstance(letter, Send):
        return _judged_send(comm, letter)
    if isinstance(letter, Recv):
        return _judged_recv(comm, letter)
    got, wanted = type(letter).__qualname__, "a Send or a Recv"
    raise ArgumentTypeError(refusal("batch", "letter", got, wanted, comm.rank, comm.size))


def _judged_send(comm: Communicator, letter: Send) -> Post:
    tensor = comm._tensor("send", letter.array)
    to = judge.rank_of(comm, "send", "destination", letter.to)
    tag = judge.tag_of(comm, "send", letter.tag)
    discovers = judge.flag_of(comm, "send", "discovers", letter.discovers)
    call = comm._call("send", tensor, root=to, tag=tag, discovers=discovers)
    return partial(comm._post, call, tensor, None, letter.array, None)


def _judged_recv(comm: Communicator, letter: Recv) -> Post:
    source, out, tag, like, discovers = letter
    rank = None if source is None else judge.rank_of(comm, "recv", "source", source)
    tag, discovers = judge.tag_of(comm, "recv", tag), judge.flag_of(comm, "recv", "discovers", discovers)
    known = like if out is None else out
    if known is None:
        comm._require_discovery("recv", discovers)
        call = comm._empty("recv", root=rank, tag=tag, discovers=discovers)
        return partial(comm._post, call, None, None, None, None)
    tensor = comm._tensor("recv", known)
    target = None if out is None else judge.output_of(comm, "recv", out, tensor.shape, tensor)
    call = comm._call("recv", tensor, root=rank, tag=tag, discovers=discovers, needs_grad=False)
    return partial(comm._post, call, None, target, known, out, tensor.device)
