"""send and recv between processes.

An envelope describes the data, and contains it if it is small. So a receiver that expected something else fails, and
receives from any rank, or of unknown shapes, need no further exchange. Larger data follows when a receive
takes the envelope. CUDA data goes through NCCL, without an envelope if the check is off and both ranks know the shape.
"""

from __future__ import annotations

import ctypes
import errno
import math
import struct
import time
from typing import Any

import torch
from torch import Tensor

from collshim.accelerator import ACCELERATOR
from collshim.calls.agreement import objection_to_pair
from collshim.calls.call import EAGER_BYTES, Call
from collshim.calls.collective import SEND
from collshim.calls.pending import version_of
from collshim.calls.plan import Plan
from collshim.calls.site import Caller
from collshim.errors import CollshimError
from collshim.layout import Parts, buffer
from collshim.transports.matching import MessageQueues
from collshim.transports.processes.backend import without_source
from collshim.transports.processes.fingerprint import call_from
from collshim.transports.processes.group import Group
from collshim.transports.processes.mailbox import Mailbox
from collshim.transports.processes.messages_in_line import set_in_line
from collshim.transports.processes.nccl.messages import NcclMessages, keep_failure
from collshim.transports.processes.outbox import Outbox
from collshim.transports.processes.request import Envelope, MessageRequest
from collshim.transports.sockets.connection import LONGEST_HEADER, MESSAGE, READABLE, RELEASE, Frame
from collshim.transports.sockets.connections import CLOSED, Connections
from collshim.transports.sockets.offers import Place, place_of
from collshim.transports.streams import follow, on_stream
from collshim.transports.waiting import FIRST_SLICE

_KNOWN = 8
"""The number of senders' lines whose messages a receive takes without a comparison."""


class Messages(NcclMessages):
    """One rank's messages within one group.

    Attributes:
        group: the group; ``connections``: those of the process; ``lock`` and ``lost``: theirs.
        outbox: sends its messages; ``queues``: the messages that have arrived, and the receives that wait.
        last_check: when a send last asked whether the receiver has ended.
    """

    def __init__(self, group: Group, connections: Connections) -> None:
        self.group = group
        self.connections = connections
        self.lock, self.lost = connections.lock, connections.lost
        self.queues = MessageQueues[MessageRequest, Envelope](_fits)
        self._ranks = {owner: rank for rank, owner in enumerate(group.ranks)}
        self.last_check = float("-inf")
        self._box = None if group.shared is None or group.shared.pipes is None else Mailbox(group.shared)
        self.outbox = Outbox(connections, self._box, group.ranks, connections.register(group.key, self))

    def start(self, plan: Plan, inputs: Parts | None, outputs: Parts | None, caller: Caller | None) -> MessageRequest:
        """See ``Transport.message``."""
        group, call = self.group, plan.call
        on_cuda = not plan.on_cpu
        if on_cuda:
            self._refuse_on_cuda(call)
        target = outputs if isinstance(outputs, Tensor) else None
        box = None if self._box is None else self
        message = MessageRequest(group, self.connections, plan, target, caller, box)
        in_envelope = not on_cuda or group.checks_on_cuda or call.discovers or call.root == group.rank
        in_envelope = in_envelope and (self._batch is None or not on_cuda or call.root == group.rank)
        if call.collective is SEND and isinstance(inputs, Tensor):
            self._send(message, inputs, in_envelope)
        elif in_envelope:
            with self.lock:
                envelope = self.queues.receive(message)
                if envelope is not None:  # it has arrived already
                    self._deliver(envelope, message)
        else:
            message.joint = call.needs_grad
            self._receive_by_nccl(message, call.root or 0)
        return message

    def _send(self, message: MessageRequest, tensor: Tensor, in_envelope: bool) -> None:
        call, peer = message.plan.call, message.plan.call.root or 0
        if peer == self.group.rank:
            message.moved = True
            # a message to itself does not leave the rank
            self._accept(Envelope(peer, message.call, 0, tensor.clone(), message.stream))
            return
        try:
            if time.monotonic() - self.last_check > FIRST_SLICE:
                self._check(message)
            if in_envelope:
                self._post(message, peer, tensor)
        except CollshimError as failure:
            message.fail(failure)
        except OSError as error:
            message.end(error.strerror or str(error))
        if call.device == ACCELERATOR and message.failure is None:
            self._send_by_nccl(message, tensor, peer)

    def _post(self, message: MessageRequest, peer: int, tensor: Tensor) -> None:
        """Send the envelope, together with the data if it is small."""
        plan, connections, owner = message.plan, self.connections, self.group.ranks[peer]
        header = plan.carrier.header(plan.call, message.caller, LONGEST_HEADER)
        if why := connections.why_unreachable(owner):
            raise ConnectionResetError(errno.ECONNRESET, why)
        if not plan.on_cpu:
            self.outbox.send(peer, MESSAGE, 0, header, 0, 0)
        elif tensor.nbytes <= EAGER_BYTES:
            self.outbox.send(peer, MESSAGE, 0, header, tensor.data_ptr(), tensor.nbytes, message)
            self.repeat_soon(plan)
        else:
            message.inputs, message.version = tensor, version_of(tensor) if message.caller else None
            shared = self.group.shared
            place = tensor.data_ptr() if shared is not None and shared.reads_far else 0
            kind, number, data = connections.offer(owner, buffer(tensor), message, place)
            address = ctypes.addressof(ctypes.c_char.from_buffer(data)) if data else 0
            self.outbox.send(peer, kind, number, header, address, data.nbytes)

    def post_in_line(self, plan: Plan, tensor: Tensor, caller: Caller | None) -> bool:
        """Send small data without a request; send nothing and return False if the message needs a closer look."""
        peer = plan.call.root or 0
        is_due = time.monotonic() - self.last_check > FIRST_SLICE
        if is_due or not self.group.is_usable() or self.connections.why_unreachable(self.group.ranks[peer]):
            return False
        header = plan.carrier.header(plan.call, caller, LONGEST_HEADER)
        try:
            self.outbox.send(peer, MESSAGE, 0, header, tensor.data_ptr(), tensor.nbytes)
        except OSError:  # the pipe is full, and the socket has ended: a request reports that
            return False
        self.group.pending.last = plan.call, caller
        return True

    def is_next(self) -> bool:
        """Return whether the next message that arrives is for the next receive."""
        return not (self.queues.posted or self.queues.unexpected) and self.group.is_usable()

    def receive_soon(self, message: MessageRequest, *, waits: bool = True) -> None:
        """See ``SharedBox``: possible if no other receive waits, and if the message is the next and like earlier ones.

        Without ``waits``, do so only if the message is already there.
        """
        carrier, source, target, box = message.plan.carrier, message.plan.call.root, message.outputs, self._box
        if not (carrier.awaited and carrier.in_line) or source is None or target is None or box is None:
            return
        with self.lock:
            if message.moved or self.queues.posted != [message] or self.queues.unexpected or not self.group.is_usable():
                return
            number = box.take(source, carrier.awaited, target, waits=waits)
            if number is not None:
                self.queues.posted.clear()
                message.source, message.arrived, message.moved = source, True, True
                if number:
                    self.release(source, number)

    def release(self, source: int, number: int, why: str = "") -> None:
        """Tell the sender that an offer is over: see ``Connections.release``."""
        self.outbox.release(source, number, why)

    def look(self, waits: bool) -> bool:
        """See ``Box``."""
        return self._box is not None and self._box.look(waits)

    def drain(self) -> None:
        """See ``Box`` and ``Inbox``."""
        if self._box is not None:
            for message in self.queues.posted[:1]:
                self.receive_soon(message, waits=False)
            self._box.drain(self._handle)

    def wake(self) -> None:
        """See ``Inbox``."""
        if self._box is not None:
            self._box.rest_on()
            self.drain()

    def rest(self, *, asleep: bool) -> None:
        """See ``Box``; ranks that this one waits for are watched, and those that have its offers are woken."""
        box, ranks = self._box, self.group.ranks
        if box is None:
            return
        box.rest(asleep=asleep)
        if asleep:
            unanswered, box.unanswered = box.unanswered, set()
            for peer in unanswered:
                self.outbox.wake(peer)
            for message in self.queues.posted:
                if message.plan.call.root is not None:
                    self.connections.watch(ranks[message.plan.call.root])

    def _handle(self, source: int, frame: Frame) -> None:
        if frame.kind == RELEASE:
            self.connections.released(self.group.ranks[source], frame)
        else:
            self._take(source, frame)

    def _check(self, message: MessageRequest) -> None:
        """Raise an error if another rank has ended the group; called at intervals, since a rank can send often.

        Raises:
            OSError: the receiver's process has ended, which no socket reports if there is none.
        """
        self.last_check = time.monotonic()
        message.raise_if_ended()
        shared, root = self.group.shared, message.plan.call.root
        if shared is not None and root is not None and shared.peers.has_ended(root):
            raise ConnectionResetError(errno.ECONNRESET, "its process has ended")

    def take(self, source: int, frame: Frame) -> None:
        """See ``Inbox``."""
        if self._box is None:
            self._take(self._ranks[source], frame)
        else:
            self._box.hold(self._ranks[source], frame)
            self.drain()

    def _take(self, source: int, frame: Frame) -> None:
        data: memoryview | Place = frame.data
        try:
            call = call_from(frame.header)
            if frame.kind == READABLE:
                data = place_of(frame.data)
        except (ValueError, struct.error) as error:
            raise ConnectionAbortedError(errno.ECONNABORTED, "it sent an invalid frame") from error
        self._accept(Envelope(source, call, frame.number, data, header=frame.header))

    def _accept(self, envelope: Envelope) -> None:
        with self.lock:
            message = self.queues.deliver(envelope)
            if message is not None:
                self._deliver(envelope, message)
            elif type(envelope.data) is memoryview:  # valid only until the next message is read
                envelope.data = bytes(envelope.data)

    def _deliver(self, envelope: Envelope, message: MessageRequest) -> None:
        sent, message.source, message.arrived = envelope.call, envelope.source, True
        message.joint = sent.needs_grad
        mismatch = message.failure = self._objection(sent, message)
        if mismatch is None and self._box is not None:
            self._remember(envelope, message)
        if isinstance(envelope.data, Tensor):
            self._take_own(envelope.data, envelope, message)
        elif mismatch is None and sent.device == "cpu":
            self._fill(envelope, message)
        elif sent.device == "cpu":
            message.moved = True
            if envelope.number:
                self.release(envelope.source, envelope.number)
        else:
            with on_stream(message.stream):  # this might be a different thread from the poster's
                self._allocate(sent, message, is_wanted=mismatch is None)
                self._receive_by_nccl(message, envelope.source)

    def _remember(self, envelope: Envelope, message: MessageRequest) -> None:
        """Let later receives like this one take such messages without a comparison."""
        carrier, header = message.plan.carrier, envelope.header
        if header and not envelope.call.needs_grad and header not in carrier.awaited:
            carrier.awaited = (header, *carrier.awaited[: _KNOWN - 1])
            self.repeat_soon(message.plan)

    def repeat_soon(self, plan: Plan) -> None:
        """See ``SharedBox``; the record of an unfinished call would keep the group."""
        if self._box is not None and plan.carrier.in_line is None:
            set_in_line(self, self._box, plan)

    def _objection(self, sent: Call, message: MessageRequest) -> Any:
        """Return why the message differs from the expected one; with the check off, equal byte counts are enough."""
        group, awaited = self.group, message.plan.call
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
            with on_stream(message.stream), keep_failure(message):
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
            owner, number, data = self.group.ranks[envelope.source], envelope.number, envelope.data
            if isinstance(data, Place):
                is_there = self._read(envelope, data, target)
            else:
                is_there = bool(data) or not number
                if data:
                    buffer(target)[:] = data
            if not is_there:
                self.connections.accept(owner, number, buffer(target), message)
                return
            if number:
                self.release(envelope.source, number)
        except RuntimeError as error:  # out of memory, for example
            message.end(without_source(error))
        message.moved = True

    def _read(self, envelope: Envelope, place: Place, target: Tensor) -> bool:
        """Read data in the sender's memory; return whether it is the offered data."""
        shared, mark = self.group.shared, ctypes.c_uint64()
        return (
            shared.read_from(envelope.source, place.data, target.data_ptr(), target.nbytes)
            and shared.read_from(envelope.source, place.mark, ctypes.addressof(mark), ctypes.sizeof(mark))
            and mark.value == envelope.number
        )

    def leaks(self) -> list[str]:
        """Describe the messages never received, the receives never answered, and the calls that were not waited for."""
        group = self.group
        with self.lock:
            self.drain()
            requests = self.connections.open_offers()
            own = [request for request in requests if isinstance(request, MessageRequest) and request.group is group]
            sent = [f"{request.call} on rank {group.rank} was never received" for request in own]
            sent += self.queues.leaks(group.rank, lambda envelope: envelope.source)
            return sent + group.pending.leaks(group.key, [*own, *self.queues.posted])

    def close(self) -> None:
        """Stop taking messages."""
        self.connections.forget(self.outbox.number)
        with self.lock:
            if self._box is not None:
                self._box.leave()
                self.drain()
            for envelope in self.queues.unexpected:
                if envelope.number:
                    self.release(envelope.source, envelope.number, CLOSED)
            self.queues.unexpected.clear()

    def fail(self, failure: CollshimError) -> None:
        """Fail all receives that are still waiting, and withdraw this group's offers."""
        self.connections.withdraw(lambda request: isinstance(request, MessageRequest) and request.group is self.group)
        with self.lock:
            for message in self.queues.posted:
                message.fail(failure)
            self.queues.posted.clear()


def _fits(message: MessageRequest, envelope: Envelope) -> bool:
    call = message.plan.call
    return envelope.tag == call.tag and (call.root == envelope.source or call.root is None)


def _nbytes(call: Call) -> int:
    return -1 if call.shape is None or call.dtype is None else math.prod(call.shape) * call.dtype.itemsize
