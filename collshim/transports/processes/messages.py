"""send and recv between processes: an envelope through the world's store describes the data, and has it where small.

A receiver that expected something else gets an error, not a dead process; any-source receives and discovered shapes
need nothing more. With the check off, and shapes known on both sides, data goes directly.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.distributed import DistNetworkError

from collshim.calls.agreement import objection_to_pair
from collshim.calls.call import EAGER_BYTES, TAGS, Call
from collshim.calls.plan import Plan
from collshim.calls.site import Caller
from collshim.errors import ArgumentValueError, CollshimError, refusal
from collshim.layout import Parts
from collshim.transports.matching import MessageQueues
from collshim.transports.processes.group import Group
from collshim.transports.processes.polling import receive, receive_from_any, send
from collshim.transports.processes.progress import ProgressThread
from collshim.transports.processes.request import Envelope, MessageRequest, decoded
from collshim.transports.processes.stalls import comes_by
from collshim.transports.streams import on_stream
from collshim.transports.waiting import FIRST_SLICE

_Start = Callable[[], Any]
_FIRST_NUMBER = TAGS
"""Numbers of messages start here, above users' tags."""


class Messages:
    """One rank's messages within one group."""

    def __init__(self, group: Group, store: Any) -> None:
        self._group = group
        self._store: Any = store
        self._queues = MessageQueues[MessageRequest, Envelope](_fits)
        self._read = 0
        self._sent: dict[int, int] = {}
        self._lock = threading.RLock()
        self._batch: list[tuple[MessageRequest, _Start]] | None = None
        self._last_look = float("-inf")

    @property
    def busy(self) -> bool:
        """Whether a recv still awaits its envelope."""
        return bool(self._queues.posted)

    def start(self, plan: Plan, inputs: Parts | None, outputs: Parts | None, caller: Caller | None) -> MessageRequest:
        """See ``Transport.message``."""
        group, call = self._group, plan.call
        self._refuse_on_cuda(call)
        in_envelope = group.checks or call.discovers or call.root == group.rank
        target = outputs if isinstance(outputs, Tensor) else None
        message = MessageRequest(group, self, plan, target, caller)
        if call.op == "send" and isinstance(inputs, Tensor):
            self._send(message, inputs, in_envelope)
        elif in_envelope:
            with self._lock:
                envelope = self._queues.receive(message)  # it may have been read before, on the way to another one
                if envelope is not None:
                    self._deliver(envelope, message)
            self.collect()
            ProgressThread.watch(group)
        else:
            self._receive_directly(message)
        return message

    @contextmanager
    def together(self) -> Iterator[None]:
        """Data on CUDA that starts inside does so in one NCCL group call."""
        with self._lock:
            batch = self._batch = list[tuple[MessageRequest, _Start]]()
            try:
                yield
            finally:
                self._batch = None
                if batch:
                    _start_together(self._data_group(), batch)

    def _start(self, message: MessageRequest, start: _Start) -> None:
        """Start the data, now or with the rest of its batch; where that fails, so does ``message``."""
        if self._batch is not None and message.device.type == "cuda":
            self._batch.append((message, start))
            return
        with _failing(message):
            message.work = start()

    def _refuse_on_cuda(self, call: Call) -> None:
        """NCCL has no tags and no receive from any rank: it would deliver one message for another."""
        group = self._group
        if call.device != "cuda" or group.size == 1:
            return
        if call.tag:
            raise ArgumentValueError(refusal(call.op, "tag", call.tag, "0 on CUDA", group.rank, group.size))
        if call.root is None and not group.checks:
            expected = "a rank on CUDA with the check off"
            raise ArgumentValueError(refusal(call.op, "source", None, expected, group.rank, group.size))

    def _send(self, message: MessageRequest, tensor: Tensor, in_envelope: bool) -> None:
        call, peer = message.call, message.call.root or 0
        message.arrived = True
        if peer == self._group.rank:
            self._accept(Envelope(peer, 0, call, tensor.clone()))  # what is sent to oneself goes nowhere
            return
        with _failing(message):
            self._look_now_and_then(message)
            is_small = in_envelope and tensor.nbytes <= EAGER_BYTES and tensor.device.type == "cpu"
            tag = self._write(call, tensor if is_small else None, peer) if in_envelope else call.tag
            if not is_small:
                self._start(message, partial(send, self._data_group(), tensor, peer, tag))

    def _look_now_and_then(self, message: MessageRequest) -> None:
        """Raise where another rank has ended the group; a rank that sends much asks seldom."""
        if time.monotonic() - self._last_look > FIRST_SLICE:
            self._last_look = time.monotonic()
            message.raise_if_ended()

    def _write(self, call: Call, tensor: Tensor | None, peer: int) -> int:
        number = self._sent[peer] = self._sent.get(peer, 0) + 1
        envelope = Envelope(self._group.rank, number, call, tensor)
        place = self._store.add(f"{self._group.key}/messages/{peer}", 1)
        self._store.set(self._envelope_key(peer, place), envelope.encoded())
        return _FIRST_NUMBER + number

    def _receive_directly(self, message: MessageRequest) -> None:
        group, call, target = self._data_group(), message.call, message.target
        if target is None:
            if call.shape is None or call.dtype is None:
                raise AssertionError("without the check the receiver gives shape and dtype")
            target = message.target = torch.empty(call.shape, dtype=call.dtype, device=message.device)
        message.arrived = True
        if call.root is None:
            message.work = receive_from_any(group, target, call.tag)
        else:
            self._start(message, partial(receive, group, target, call.root, call.tag))

    def _data_group(self) -> Any:
        self._group.refuse_if_broken()
        return self._group.data_group

    def collect(self) -> None:
        """Take what envelopes have come, without waiting."""
        posted = self._queues.posted
        if posted and self._store is not None and self._lock.acquire(blocking=False):
            try:
                while posted and self._store.check([self._envelope_key(self._group.rank, self._read + 1)]):
                    self._take()
            except DistNetworkError as error:
                posted[0].broken(error)  # which fails what is awaited
            finally:
                self._lock.release()

    def has_envelope(self, message: MessageRequest, seconds: float) -> bool:
        """Whether a recv's envelope has come, after at most ``seconds``."""
        end = time.monotonic() + seconds
        with self._lock:
            while not message.arrived and self._next_by(message, end):
                self._take()
        return message.arrived

    def _next_by(self, message: MessageRequest, end: float) -> bool:
        """Whether the next envelope has come by then."""
        self._group.refuse_if_broken()
        key = self._envelope_key(self._group.rank, self._read + 1)
        try:
            return comes_by(partial(self._store.check, [key]), end)
        except DistNetworkError as error:
            raise message.broken(error) from error

    def _take(self) -> None:
        """Read the next envelope and deliver it to the receive that matches; the lock is held."""
        self._read += 1
        key = self._envelope_key(self._group.rank, self._read)
        envelope = decoded(self._store.get(key))
        self._store.delete_key(key)
        self._accept(envelope)

    def _accept(self, envelope: Envelope) -> None:
        with self._lock:
            message = self._queues.deliver(envelope)
            if message is not None:
                self._deliver(envelope, message)

    def _deliver(self, envelope: Envelope, message: MessageRequest) -> None:
        mismatch = message.failure = objection_to_pair(envelope.call, message.call, self._group.ranks)
        with on_stream(message.stream):  # this may be the progress thread
            self._fill(envelope, message, mismatch is not None)
        message.source, message.announced = envelope.source, True
        message.joint = envelope.call.needs_grad
        message.arrived = True

    def _fill(self, envelope: Envelope, message: MessageRequest, mismatched: bool) -> None:
        shape, dtype = envelope.call.shape or (), envelope.call.dtype or torch.float32
        if message.target is None or mismatched:
            if message.call.device == "any" or mismatched:
                message.device = torch.device(envelope.call.device)  # where it comes from: NCCL and gloo do not meet
            message.target = torch.empty(shape, dtype=dtype, device=message.device)
        if envelope.data is None:
            tag = _FIRST_NUMBER + envelope.number
            group = self._data_group()
            self._start(message, partial(receive, group, message.target, envelope.source, tag))
        else:
            message.target.copy_(envelope.data.view(shape))

    def close(self) -> None:
        """Let go of the store."""
        self._store = None
        self._queues.unexpected.clear()

    def fail(self, failure: CollshimError) -> None:
        """Every recv that still waits fails."""
        for message in self._queues.posted:
            message.fail(failure)
        self._queues.posted.clear()

    def _envelope_key(self, peer: int, place: int) -> str:
        return f"{self._group.key}/messages/{peer}/{place}"


def _fits(message: MessageRequest, envelope: Envelope) -> bool:
    return envelope.call.tag == message.call.tag and message.call.root in (None, envelope.source)


@contextmanager
def _failing(message: MessageRequest) -> Iterator[None]:
    """What torch cannot do for ``message`` ends the group, and is kept for its wait."""
    try:
        yield
    except RuntimeError as error:
        message.fail(error if isinstance(error, CollshimError) else message.broken(error))


def _start_together(group: Any, batch: Sequence[tuple[MessageRequest, _Start]]) -> None:
    """One group call per device: NCCL runs what it holds at the same time, and gives one work for all of it."""
    for device in {message.device for message, _ in batch}:
        messages = [(message, start) for message, start in batch if message.device == device]
        group._start_coalescing(device)
        for _, start in messages:
            start()
        work = group._end_coalescing(device)
        for message, _ in messages:
            message.work = work
