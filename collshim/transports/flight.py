"""One call between processes on its way: first the ranks' slots, then, when they agree, the data."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.distributed import DistBackendError

from collshim.call import Call
from collshim.check import objection
from collshim.combine import steps
from collshim.errors import CollshimError, CommunicationError, DeadlineError, PeerError
from collshim.layout import Parts
from collshim.outputs import allocate
from collshim.transports.absence import FIRST_SLICE
from collshim.transports.lookout import without_source
from collshim.transports.payload import Ends, Payload, start
from collshim.transports.slots import Slot, decode, given
from collshim.transports.streams import hold, on_stream, stream_to_follow

if TYPE_CHECKING:
    from collshim.transports.process_group import ProcessGroupTransport


class Flight:
    """A posted call.

    Attributes:
        calls: every rank's call once they agreed, None where they were not asked.
        failure: why the call failed, or None.
        departed: whether the data is on its way, or the call has failed.
    """

    source: int | None = None

    def __init__(
        self,
        transport: ProcessGroupTransport,
        call: Call,
        inputs: Parts | None,
        outputs: Parts | None,
        device: torch.device,
    ) -> None:
        self._transport = transport
        self.call = call
        self._inputs = inputs
        self._outputs = outputs
        self._device = device
        self._slots: tuple[Any, Tensor] | None = None
        self._payload = Payload([])
        self.token: Tensor | None = None
        self.calls: Sequence[Call] | None = None
        self.failure: CollshimError | None = None
        self.departed = False
        self._saw_gone = False
        self._next_look: float | None = None
        self._on_gpu = False
        self._stream = stream_to_follow(call, device)

    @property
    def joint(self) -> bool:
        """Whether some rank needs a gradient."""
        return self.calls is not None and any(call.needs_grad for call in self.calls)

    def exchange(self, work: Any, slots: Tensor) -> None:
        """The ranks' slots are being gathered."""
        self._slots = (work, slots)

    def depart(self) -> None:
        """Put the data on its way; the calls agree, or were not compared. Failures are kept for ``wait``."""
        try:
            self._start()
        except CollshimError:
            raise
        except Exception as error:  # of memory, say; the background thread must outlive it
            self._fail_with(error)

    def _start(self) -> None:
        transport = self._transport
        calls = self.calls or [self.call] * transport.size
        place = self._place(calls)
        self._on_gpu = place.type == "cuda"
        if self._outputs is None:
            self._outputs = allocate(calls, transport.rank, place)
        ragged = any(call.sends is not None or call.expects is not None for call in calls)
        ends = Ends(transport.payload_group, transport.rank, transport.size, ragged)
        try:
            self._payload = start(ends, self.call, self._inputs, self._outputs)
        except DistBackendError as error:
            self.fail(transport.end(PeerError, f"{self.call}: NCCL failed: {error}"))
            return
        if not self._on_gpu:
            transport.departed(self._payload.works)
        self.departed = True

    def _depart_behind(self) -> None:
        """``depart`` from whatever thread, behind the stream that the call was posted on."""
        with on_stream(self._stream):
            self.depart()

    def follow(self, work: Any) -> None:
        """The data is on its way already."""
        self._payload = Payload([work])
        self.departed = True

    def arrived(self) -> bool:
        """Whether the ranks' slots are here."""
        return self._slots is None or bool(self._slots[0].is_completed())

    def agree(self, limit: float | None) -> None:
        """Wait for the slots, compare the calls, and let the data depart; failures are kept for ``wait``."""
        if self._slots is None:
            self._depart_behind()
            return
        work, gathered = self._slots
        self.await_work(work, limit)
        slots = decode(gathered)
        self.calls = [slot.call for slot in slots]
        posted = [slot.posted for slot in slots]
        if max(posted) - min(posted) > FIRST_SLICE:
            self._refuse_if_ended()  # the others may have given this call up before its last rank came
        wrong = objection(self.calls, self._transport.ranks)
        if wrong is not None:
            self.fail(wrong)
            return
        if any(slot.data is None for slot in slots):
            self._depart_behind()
            return
        try:
            self._combine(slots)
        except Exception as error:
            self._fail_with(error)

    def _combine(self, slots: Sequence[Slot]) -> None:
        """All data came with the slots."""
        rank, size = self._transport.rank, self._transport.size
        calls = [slot.call for slot in slots]
        if self._outputs is None:
            self._outputs = allocate(calls, rank, self._place(calls))
        outputs: list[Parts | None] = [None] * size
        outputs[rank] = self._outputs
        for step in steps(calls, [given(slot, peer, size) for peer, slot in enumerate(slots)], outputs):
            step()
        self.departed = True

    def _place(self, calls: Sequence[Call]) -> torch.device:
        """Where this rank's result goes: to its own array's device, or, where it gave none, to the root's."""
        giver = calls[self.call.root or 0].device
        return torch.device(giver) if self.call.device == "any" != giver else self._device

    def fail(self, failure: CollshimError) -> None:
        """This call ends with ``failure``."""
        self.failure = failure
        self.departed = True

    def _fail_with(self, error: Exception) -> None:
        """What this rank alone could not do; the others may have."""
        failure = CommunicationError(f"{self.call.op}: {type(error).__name__}: {error}")
        failure.__cause__ = error
        self.fail(failure)

    def failed(self) -> bool:
        """Whether the call has failed."""
        return self.failure is not None

    def own_failure(self) -> CollshimError:
        """What a wait raises: an exception of its own."""
        failure = self.failure or CommunicationError("no failure")
        found = type(failure)(*failure.args)
        found.__cause__ = failure.__cause__
        return found

    def done(self) -> bool:
        """Whether ``wait`` would return, or raise, at once."""
        if not self.departed:
            self._transport.advance()
        if self.failure is not None or (self.departed and all(work.is_completed() for work in self._payload.works)):
            return True
        return self._is_hopeless()

    def _is_hopeless(self) -> bool:
        """Looked at now and then by who polls: whether the group has ended, or a rank of it has left."""
        now, looks_at = time.monotonic(), self._next_look
        if looks_at is None or now >= looks_at:
            self._next_look = now + FIRST_SLICE
        if looks_at is not None and now >= looks_at:
            try:
                self._look()
            except CommunicationError as failure:
                self.fail(failure)
            finally:
                self._transport.rendezvous.board.clear()
        return self.failure is not None

    def _look(self) -> None:
        self._refuse_if_ended()
        self._refuse_if_hopeless(self._transport.rendezvous.board.gone(self._transport.ranks))

    def wait(self, timeout: float | None) -> Parts | None:
        """The outputs, once the data is here."""
        limit = None if timeout is None else time.monotonic() + timeout
        try:
            if not self.departed:
                self._transport.agree_up_to(self, limit)
            if self.failure is None:
                self._land(limit)
        finally:
            self._transport.unseen.seen(self)
        if self.failure is not None:
            raise self.own_failure()
        return self._outputs

    def _land(self, limit: float | None) -> None:
        if self._on_gpu:
            self._land_on_gpu(self._payload)
            return
        for work in self._payload.works:
            self.await_work(work, limit)
        self._complete(self._payload)

    def _complete(self, payload: Payload) -> None:
        """What is left to do once the data is here; not before: an interrupted wait may be resumed."""
        self._payload = Payload([])
        try:
            if payload.finish is not None:
                payload.finish()
        except Exception as error:
            self._fail_with(error)

    def _land_on_gpu(self, payload: Payload) -> None:
        """This thread's stream follows the data; the host goes on.

        No deadline is given: NCCL would wait for it on the host, and end the group when it is over.
        """
        here = torch.cuda.current_stream(None if self._stream is None else self._stream.device)
        with on_stream(here if payload.finish is None else self._stream):
            self._order_behind(payload)
            done = None if payload.finish is None else torch.cuda.current_stream().record_event()
        if done is not None:
            here.wait_event(done)
        hold(self._outputs, here)

    def _order_behind(self, payload: Payload) -> None:
        """What is left to do is done on the stream that owns the memory it reads: the one the call was posted on."""
        try:
            for work in payload.works:
                work.wait()
        except DistBackendError as error:
            self.fail(self._transport.end(PeerError, f"{self.call}: NCCL failed: {error}"))
            return
        self._complete(payload)

    def await_work(self, work: Any, limit: float | None) -> None:
        """Wait for one of torch's works in slices, so that the others hear where this rank waits."""
        board, seconds = self._transport.rendezvous.board, FIRST_SLICE
        try:
            while not _waited(work, _slice(seconds, limit)):
                board.post(self._transport.key, self.call)  # first: those who gave up wait for it
                self._refuse_if_late(limit)
                self._look()
                seconds = 1.0
        except RuntimeError as error:
            if isinstance(error, CollshimError):
                raise
            self._end(PeerError, f"the connection broke: {without_source(error)}", error)
        finally:
            board.clear()

    def _refuse_if_late(self, limit: float | None) -> None:
        if limit is not None and time.monotonic() >= limit:
            self._end(DeadlineError, "the deadline passed", None)

    def _refuse_if_ended(self) -> None:
        told = self._transport.rendezvous.board.ended(self._transport.key)
        if told is not None:
            raise self._transport.end(PeerError, told[1])

    def _refuse_if_hopeless(self, gone: bool) -> None:
        """A rank that left has sent all that it will; what it sent before may still be on its way for one slice."""
        if gone and self._saw_gone:
            self._end(PeerError, "nobody else will come", None)
        self._saw_gone = gone

    def _end(self, kind: type[PeerError] | type[DeadlineError], why: str, cause: BaseException | None) -> None:
        transport = self._transport
        transport.rendezvous.board.post(transport.key, self.call)
        absent = transport.rendezvous.board.who_did_not_come(transport.key, transport.ranks, self.call)
        raise transport.end(kind, f"{absent} ({why})") from cause


def _slice(seconds: float, limit: float | None) -> float:
    return seconds if limit is None else max(0.001, min(seconds, limit - time.monotonic()))


def _waited(work: Any, seconds: float) -> bool:
    """Whether the work is over after at most ``seconds``; raises what it failed with."""
    try:
        work.wait(timedelta(seconds=seconds))
    except RuntimeError:
        if not work.is_completed():
            return False
        work.wait()  # it ended just as the time did: this returns at once, or raises what it failed with
    return True
