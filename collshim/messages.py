"""send, recv, and batches of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from torch import Tensor

from collshim.accelerator import ACCELERATOR
from collshim.arrays import Array
from collshim.calls import validation
from collshim.calls.call import EAGER_BYTES, Call
from collshim.calls.collective import RECV, SEND
from collshim.calls.plan import Plan
from collshim.calls.recognizer import dense
from collshim.errors import ArgumentTypeError
from collshim.layout import needs_grad
from collshim.repeating import Repeating
from collshim.work import Work


class Send(NamedTuple):
    """One send of ``Communicator.batch``, with the arguments of ``Communicator.send``."""

    array: Array
    to: int
    tag: int = 0
    discovers: bool = False


class Recv(NamedTuple):
    """One recv of ``Communicator.batch``, with the arguments of ``Communicator.recv``."""

    source: int | None
    out: Array | None = None
    tag: int = 0
    like: Array | None = None
    discovers: bool = False


class Messages(Repeating):
    """``Communicator``'s methods between two ranks."""

    def send(self, array: Array, to: int, tag: int = 0, *, discovers: bool = False) -> Work[None]:
        """Send the array to rank ``to``. A small send completes at once, a larger send when the receive is posted.

        Examples:
            >>> def pass_on(comm):
            ...     if comm.rank == 0:
            ...         return comm.send(np.array([1, 2]), to=1).wait()
            ...     return comm.recv(source=0, like=np.zeros(2, int)).wait()
            >>> ranks(pass_on)
            [None, array([1, 2])]
        """
        recalls = discovers is False and type(tag) is int
        if recalls and (work := self.repeat_by_plan(SEND, array, None, tag, to)) is not None:
            return work
        return self._validated_send(Send(array, to, tag, discovers))()

    def recv(
        self,
        source: int | None,
        *,
        out: Array | None = None,
        tag: int = 0,
        like: Array | None = None,
        discovers: bool = False,
    ) -> Work[Array]:
        """Receive an array from rank ``source``, or from any rank if ``source`` is None; see ``send`` for an example.

        ``out`` or ``like`` must have the dtype, kind and shape of the array that is sent. Its shape may also be flat,
        or differ by dimensions of length 1. If both are None, the result is a torch tensor with the sender's shape and
        dtype; this needs the check, or ``discovers=True`` on both ranks. After the wait, ``Work.source`` is the sender.
        """
        recalls = discovers is False and type(tag) is int and (out is None or like is None)
        if recalls and (work := self.repeat_by_plan(RECV, like if out is None else out, out, tag, source)) is not None:
            return work
        return self._validated_recv(Recv(source, out, tag, like, discovers))()

    def batch(self, messages: Sequence[Send | Recv]) -> list[Work[Array]]:
        """Post sends and receives together, and return a work for each; if one is refused, none is sent.

        On NCCL, messages that are posted one by one may wait for each other; the messages of a batch do not.

        Examples:
            >>> def exchange(comm):
            ...     peer = 1 - comm.rank
            ...     own = np.array([comm.rank])
            ...     posted = comm.batch([collshim.Send(own, peer), collshim.Recv(peer, like=own)])
            ...     return [work.wait() for work in posted]
            >>> ranks(exchange)
            [[None, array([1])], [None, array([0])]]
        """
        if not isinstance(messages, Iterable):
            got, expected = type(messages).__qualname__, "a list of Send and Recv"
            raise ArgumentTypeError(validation.error_text(self, "batch", "list of messages", got, expected))
        posts = [self._recalled(message) or self._validated(message) for message in messages]
        self._transport.refuse_batch([_call_of(post) for post in posts])
        with self._transport.together():
            return [post() for post in posts]

    def _recalled(self, message: Send | Recv) -> partial[Work[Array]] | None:
        """Return a function that posts a message like a validated one; None if the message needs validation."""
        peer: Any
        if isinstance(message, Send):
            collective, array, peer, fits = SEND, message.array, message.to, True
        elif isinstance(message, Recv):
            collective, array, peer, fits = RECV, message.out, message.source, message.like is None
        else:
            return None
        tensor = dense(array)
        if type(tensor) is not Tensor or type(peer) is not int or type(message.tag) is not int or not fits:
            return None
        if not tensor.is_cpu:  # the key below names no device
            return None
        known = self._plans.get((collective, message.tag, peer, tensor.dtype, tensor.shape))
        if known is None or message.discovers is not False:
            return None
        plan = known.plan
        if plan.gives:
            at_once = tensor.nbytes <= EAGER_BYTES
            return partial(self._start, plan, tensor, None, None, None, None, at_once)
        return partial(self._start, plan, None, tensor, array, None, None)

    def _validated(self, message: Send | Recv) -> partial[Work[Array]]:
        """Validate a message, and return a function that posts it."""
        if isinstance(message, Send):
            return self._validated_send(message)
        if isinstance(message, Recv):
            return self._validated_recv(message)
        got, expected = type(message).__qualname__, "a Send or a Recv"
        raise ArgumentTypeError(validation.error_text(self, "batch", "message", got, expected))

    def _validated_send(self, message: Send) -> partial[Work[Array]]:
        tensor = self._tensor("send", message.array)
        to = validation.rank_of(self, "send", "destination", message.to)
        tag = validation.tag_of(self, "send", message.tag)
        discovers = validation.flag_of(self, "send", "discovers", message.discovers)
        call = self._call(SEND, tensor, root=to, tag=tag, discovers=discovers)
        return partial(self._post, call, tensor, None, message.array, None)

    def _validated_recv(self, message: Recv) -> partial[Work[Array]]:
        source, out, tag, like, discovers = message
        rank = None if source is None else validation.rank_of(self, "recv", "source", source)
        tag = validation.tag_of(self, "recv", tag)
        discovers = validation.flag_of(self, "recv", "discovers", discovers)
        known = like if out is None else out
        if known is None:
            self._require_discovery("recv", discovers)
            return partial(self._post, Call(RECV, root=rank, tag=tag, discovers=discovers), None, None, None, None)
        tensor = self._tensor("recv", known)
        target = None if out is None else validation.output_of(self, "recv", out, tensor.shape, tensor)
        is_unannounced = tensor.device.type == ACCELERATOR  # no envelope says whether the sender needs a gradient
        graph = is_unannounced and needs_grad(tensor)
        call = self._call(RECV, tensor, root=rank, tag=tag, discovers=discovers, needs_grad=graph)
        return partial(self._post, call, None, target, known, out, tensor.device)


def _call_of(post: partial[Work[Array]]) -> Call:
    """Return the call of a message that is about to be posted."""
    first: Call | Plan = post.args[0]
    return first if isinstance(first, Call) else first.call
