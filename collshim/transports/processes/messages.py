"""send and recv between processes.

An envelope describes the data, and contains it if it is small. So a receiver that expected something else gets an
error, and receives from any rank or of unknown shapes need nothing more. Larger data follows when a receive takes the
envelope. On CUDA it goes through NCCL; without an envelope if the check is off and both sides know the shapes.
"""

from __future__ import annotations

import ctypes
import errno
import math
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor

from collshim.accelerator import ACCELERATOR
from collshim.arrays.dtypes import NATIVE
from collshim.calls.agreement import objection_to_pair
from collshim.calls.call import EAGER_BYTES, Call
from collshim.calls.collective import SEND
from collshim.calls.pending import version_of
from collshim.calls.plan import Plan
from collshim.calls.site import Caller
from collshim.errors import ArgumentValueError, CollshimError, refusal
from collshim.layout import Parts, as_bytes, buffer
from collshim.transports.matching import MessageQueues
from collshim.transports.processes.backend import coalesce, without_source
from collshim.transports.processes.fingerprint import call_from
from collshim.transports.processes.group import Group
from collshim.transports.processes.port import Port
from collshim.transports.processes.request import Envelope, MessageRequest
from collshim.transports.sockets.connection import LONGEST_HEADER, READABLE, Frame
from collshim.transports.sockets.connections import CLOSED, Connections
from collshim.transports.sockets.offers import Place, place_of
from collshim.transports.streams import follow, on_stream
from collshim.transports.waiting import FIRST_SLICE

_Start = Callable[[], Any]


class Messages:
    """One rank's messages within one group."""

    def __init__(self, group: Group, connections: Connections) -> None:
        self._group = group
        self._connections = connections
        self._lock = connections.lock
        self._queues = MessageQueues[MessageRequest, Envelope](_fits)
        self._ranks = {owner: rank for rank, owner in enumerate(group.ranks)}
        self._batch: list[tuple[MessageRequest, _Start]] | None = None
        self._last_check = float("-inf")
        self._number = connections.register(group.key, self)

    def start(self, plan: Plan, inputs: Parts | None, outputs: Parts | None, caller: Caller | None) -> MessageRequest:
        """See ``Transport.message``."""
        group, call = self._group, plan.call
        on_cuda = not plan.on_cpu
        if on_cuda:
            self._refuse_on_cuda(call)
        target = outputs if isinstance(outputs, Tensor) else None
        message = MessageRequest(group, self._connections, plan, target, caller)
        in_envelope = not on_cuda or group.checks_on_cuda or call.discovers or call.root == group.rank
        in_envelope = in_envelope and (self._batch is None or not on_cuda or call.root == group.rank)
        if call.collective is SEND and isinstance(inputs, Tensor):
            self._send(message, inputs, in_envelope)
        elif in_envelope:
            with self._lock:
                envelope = self._queues.receive(message)
                if envelope is not None:  # it has arrived already
                    self._deliver(envelope, message)
        else:
            message.joint = call.needs_grad
            self._receive_by_nccl(message, call.root or 0)
        return message

    @contextmanager
    def together(self) -> Iterator[None]:
        """Start all data on CUDA inside the block in one NCCL group call; if anything raises, start none of it."""
        with self._lock:
            batch = self._batch = list[tuple[MessageRequest, _Start]]()
            try:
                yield
            finally:
                self._batch = None
        for device in {message.device for message, _ in batch}:
            self._start_together(device, [entry for entry in batch if entry[0].device == device])

    def refuse_batch(self, calls: Sequence[Call]) -> None:
        """Raise if the messages cannot start together; on CUDA both sides must know the shapes, without an envelope."""
        group = self._group
        if group.size == 1 or not any(call.device == ACCELERATOR for call in calls):
            return
        for call in calls:
            if call.device == ACCELERATOR:
                self._refuse_on_cuda(call)
            if call.root is None and call.device != "cpu":
                expected = "a rank in a batch on CUDA"
                raise ArgumentValueError(refusal(call.op, "source", None, expected, group.rank, group.size))
            if (call.device == "any" or call.discovers) and call.root != group.rank:
                got, expected = "to be discovered", "known in a batch on CUDA: give like or out, and no discovers"
                raise ArgumentValueError(refusal(call.op, "shape", got, expected, group.rank, group.size))

    def _refuse_on_cuda(self, call: Call) -> None:
        """Raise if NCCL, which has no tags and no receive from any rank, could deliver one message for another."""
        group = self._group
        if group.size == 1:
            return
        if call.tag:
            raise ArgumentValueError(refusal(call.op, "tag", call.tag, "0 on CUDA", group.rank, group.size))
        if call.root is None and not group.checks_on_cuda:
            expected = "a rank on CUDA with the check off"
            raise ArgumentValueError(refusal(call.op, "source", None, expected, group.rank, group.size))

    def _send(self, message: MessageRequest, tensor: Tensor, in_envelope: bool) -> None:
        call, peer = message.plan.call, message.plan.call.root or 0
        if peer == self._group.rank:
            message.moved = True
            # a message to itself does not leave the rank
            self._accept(Envelope(peer, message.call, 0, tensor.clone(), message.stream))
            return
        try:
            if time.monotonic() - self._last_check > FIRST_SLICE:
                self._check(message)
            if in_envelope:
                self._post(message, self._group.ranks[peer], tensor)
        except CollshimError as failure:
            message.fail(failure)
        except OSError as error:
            message.end(error.strerror or str(error))
        if call.device == ACCELERATOR and message.failure is None:
            self._start(message, partial(self._port().send, [_movable(tensor)], peer, 0), peer)

    def _post(self, message: MessageRequest, owner: int, tensor: Tensor) -> None:
        """Send the envelope, together with the data if it is small."""
        plan, connections = message.plan, self._connections
        header = plan.carrier.header(plan.call, message.caller, LONGEST_HEADER)
        if not plan.on_cpu:
            connections.send(owner, self._number, header, b"")
        elif tensor.nbytes <= EAGER_BYTES:
            data = buffer(tensor).tobytes() if tensor.nbytes else b""  # copied: the caller may write to the tensor
            connections.send(owner, self._number, header, data, message)
        else:
            message.inputs, message.version = tensor, version_of(tensor) if message.caller else None
            shared = self._group.shared
            place = tensor.data_ptr() if shared is not None and shared.reads_far else 0
            connections.offer(owner, self._number, header, buffer(tensor), message, place)

    def _check(self, message: MessageRequest) -> None:
        """Raise an error if another rank has ended the group; asked at intervals, since a rank may send often."""
        self._last_check = time.monotonic()
        message.raise_if_ended()

    def take(self, source: int, frame: Frame) -> None:
        """See ``Inbox``."""
        data: memoryview | Place = frame.data
        try:
            call = call_from(frame.header)
            if frame.kind == READABLE:
                data = place_of(frame.data)
        except (ValueError, struct.error) as error:
            raise ConnectionAbortedError(errno.ECONNABORTED, "it sent an invalid frame") from error
        self._accept(Envelope(self._ranks[source], call, frame.number, data))

    def _accept(self, envelope: Envelope) -> None:
        with self._lock:
            message = self._queues.deliver(envelope)
            if message is not None:
                self._deliver(envelope, message)
            elif type(envelope.data) is memoryview:  # valid only until the next message is read
                envelope.data = bytes(envelope.data)

    def _deliver(self, envelope: Envelope, message: MessageRequest) -> None:
        sent, message.source, message.arrived = envelope.call, envelope.source, True
        message.joint = sent.needs_grad
        mismatch = message.failure = self._objection(sent, message)
        if isinstance(envelope.data, Tensor):
            self._take_own(envelope.data, envelope, message)
        elif mismatch is None and sent.device == "cpu":
            self._fill(envelope, message)
        elif sent.device == "cpu":
            message.moved = True
            if envelope.number:
                self._connections.release(self._group.ranks[envelope.source], envelope.number)
        else:
            with on_stream(message.stream):  # this may be another thread than the poster's
                self._allocate(sent, message, is_wanted=mismatch is None)
                self._receive_by_nccl(message, envelope.source)

    def _objection(self, sent: Call, message: MessageRequest) -> Any:
        """Return why the message differs from the expected one; with the check off, equal byte counts are enough."""
        group, awaited = self._group, message.plan.call
        is_alike = sent.shape == awaited.shape and sent.dtype is awaited.dtype and sent.device == awaited.device
        if is_alike and sent.content == awaited.content:
            return None
        is_checked = group.checks if sent.device == "cpu" else group.checks_on_cuda
        is_checked = is_checked or awaited.discovers or sent.content != awaited.content
        if not is_checked and sent.device == awaited.device and _nbytes(sent) == _nbytes(awaited):
            return None
        return objection_to_pair(sent, message.call, group.ranks)

    def _allocate(self, sent: Call, message: MessageRequest, *, is_wanted: bool) -> None:
        """Allocate memory for the data, if the receiver passed none that fits."""
        if is_wanted and message.outputs is not None:
            return
        own = message.plan.call
        if own.device == "any" or not is_wanted:
            message.device = torch.device(sent.device)  # the sender's: NCCL and gloo do not work together
        shape, dtype = (own.shape, own.dtype) if is_wanted and own.shape is not None else (sent.shape, sent.dtype)
        message.outputs = torch.empty(shape or (), dtype=dtype or torch.float32, device=message.device)

    def _take_own(self, data: Tensor, envelope: Envelope, message: MessageRequest) -> None:
        """Take a message from this rank to itself, perhaps posted on another stream."""
        if message.failure is None:
            with on_stream(message.stream), _keep_failure(message):
                self._allocate(envelope.call, message, is_wanted=True)
                if envelope.stream is not None:
                    follow(envelope.stream, data)
                if message.outputs is not None:
                    message.outputs.copy_(data.view(message.outputs.shape))
        message.moved = True

    def _fill(self, envelope: Envelope, message: MessageRequest) -> None:
        """Copy the data to the output, or accept the offer of it."""
        try:
            if message.outputs is None:
                self._allocate(envelope.call, message, is_wanted=True)
            target = message.outputs
            if target is None:
                raise AssertionError("memory was allocated")
            owner, number, data = self._group.ranks[envelope.source], envelope.number, envelope.data
            if isinstance(data, Place):
                is_there = self._read(envelope, data, target)
            else:
                is_there = bool(data) or not number
                if data:
                    buffer(target)[:] = data
            if not is_there:
                self._connections.accept(owner, number, buffer(target), message)
                return
            if number:
                self._connections.release(owner, number)
        except RuntimeError as error:  # out of memory, for example
            message.end(without_source(error))
        message.moved = True

    def _read(self, envelope: Envelope, place: Place, target: Tensor) -> bool:
        """Read data in the sender's memory; return whether it is the offered data."""
        shared, mark = self._group.shared, ctypes.c_uint64()
        return (
            shared.read_from(envelope.source, place.data, target.data_ptr(), target.nbytes)
            and shared.read_from(envelope.source, place.mark, ctypes.addressof(mark), ctypes.sizeof(mark))
            and mark.value == envelope.number
        )

    def _receive_by_nccl(self, message: MessageRequest, source: int) -> None:
        call, target = message.plan.call, message.outputs
        if target is None:
            if call.shape is None or call.dtype is None:
                raise AssertionError("without the check the receiver gives shape and dtype")
            target = message.outputs = torch.empty(call.shape, dtype=call.dtype, device=message.device)
        message.arrived = True
        self._start(message, partial(self._port().recv, [_movable(target)], source, 0), source)

    def _start(self, message: MessageRequest, start: _Start, peer: int) -> None:
        """Start NCCL's transfer, now or with the rest of its batch; if that fails, so does ``message``."""
        if self._batch is not None:
            self._batch.append((message, start))
            return
        with _keep_failure(message):
            self._group.launches.meet_peer(message, peer)
            self._group.launches.mark()
            message.work = start()
            self._add_launch(message, message.work)
            message.moved = True

    def _start_together(self, device: torch.device, batch: Sequence[tuple[MessageRequest, _Start]]) -> None:
        """Start a batch in one group call: NCCL runs its messages concurrently, with one work for all of them."""
        launches = self._group.launches
        try:
            launches.meet(batch[0][0], device)
            launches.mark()
            _, work = coalesce(self._port(), device, [start for _, start in batch])
        except Exception as error:
            failure = error if isinstance(error, CollshimError) else batch[0][0].broken(str(error))
            for message, _ in batch:
                message.fail(failure)
            return
        for message, _ in batch:
            message.work, message.moved = work, True
            self._add_launch(message, work)

    def _add_launch(self, message: MessageRequest, work: Any) -> None:
        message.stream = message.stream or torch.accelerator.current_stream()  # CUDA was not initialized here before
        message.launch = self._group.launches.add(message, work, message.stream)

    def _port(self) -> Port:
        self._group.refuse_if_broken()
        port: Port = self._group.connected_gpu_port()
        return port

    def leaks(self) -> list[str]:
        """Describe the messages never received, the receives never answered, and the calls that were not waited for."""
        group, requests = self._group, self._connections.open_offers()
        with self._lock:
            own = [request for request in requests if isinstance(request, MessageRequest) and request.group is group]
            sent = [f"{request.call} on rank {group.rank} was never received" for request in own]
            sent += self._queues.leaks(group.rank, lambda envelope: envelope.source)
            return sent + group.pending.leaks(group.key, [*own, *self._queues.posted])

    def close(self) -> None:
        """Stop taking messages."""
        self._connections.forget(self._number)
        with self._lock:
            for envelope in self._queues.unexpected:
                if envelope.number:
                    self._connections.release(self._group.ranks[envelope.source], envelope.number, CLOSED)
            self._queues.unexpected.clear()

    def fail(self, failure: CollshimError) -> None:
        """Fail all receives that are still waiting, and withdraw this group's offers."""
        self._connections.withdraw(lambda request: isinstance(request, MessageRequest) and request.group is self._group)
        with self._lock:
            for message in self._queues.posted:
                message.fail(failure)
            self._queues.posted.clear()


def _fits(message: MessageRequest, envelope: Envelope) -> bool:
    call = message.plan.call
    return envelope.tag == call.tag and (call.root == envelope.source or call.root is None)


def _nbytes(call: Call) -> int:
    return -1 if call.shape is None or call.dtype is None else math.prod(call.shape) * call.dtype.itemsize


def _movable(tensor: Tensor) -> Tensor:
    """Return a view that NCCL can move; one element for an empty tensor, since NCCL moves no empty data."""
    message = tensor.view(-1) if tensor.dtype in NATIVE else as_bytes(tensor)
    return message if message.numel() else message.new_zeros(1)


@contextmanager
def _keep_failure(message: MessageRequest) -> Iterator[None]:
    """Keep torch's errors inside the block for the wait of ``message``."""
    try:
        yield
    except CollshimError as failure:
        message.fail(failure)
    except RuntimeError as error:
        message.end(without_source(error))
