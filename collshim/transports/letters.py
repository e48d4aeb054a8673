"""send and recv between processes: a letter through the world's store says what comes, and carries it where small.

A receiver that expected something else gets an error, not a dead process; any-source receives and discovered shapes
need nothing more. With the check off, and shapes known on both sides, data goes directly.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.distributed import DistNetworkError

from collshim.call import EAGER_BYTES, TAGS, Call
from collshim.check import objection_to_pair
from collshim.errors import ArgumentValueError, CollshimError, refusal
from collshim.layout import Parts
from collshim.transports import Posted
from collshim.transports.absence import comes_by
from collshim.transports.background import Background
from collshim.transports.lookout import Lookout
from collshim.transports.parcel import Letter, Parcel, opened
from collshim.transports.payload import Payload, receive, receive_from_anybody, send
from collshim.transports.point_to_point import PointToPoint
from collshim.transports.streams import on_stream

if TYPE_CHECKING:
    from collshim.transports.process_group import ProcessGroupTransport

_Departing = tuple[Parcel, Callable[[], Payload]]
_FIRST_NUMBER = TAGS
"""Numbers of letters start here, above users' tags."""


class Postbox:
    """One rank's letters within one group."""

    def __init__(self, transport: ProcessGroupTransport) -> None:
        self._transport = transport
        self._store: Any = transport.rendezvous.store
        self._awaited: list[Parcel] = []
        self._unclaimed: deque[Letter] = deque()
        self._read = 0
        self._sent: dict[int, int] = {}
        self._lock = threading.RLock()
        self._batch: list[_Departing] | None = None
        self.lookout = Lookout(transport)

    @property
    def busy(self) -> bool:
        """Whether a recv still awaits its letter."""
        return bool(self._awaited)

    def post(self, call: Call, inputs: Parts | None, outputs: Parts | None, device: torch.device) -> Posted:
        """Post a send of ``inputs`` or a recv into ``outputs``."""
        self._refuse_on_cuda(call)
        lettered = self._transport.checks or call.discovers or call.root == self._transport.rank
        if call.op == "send" and isinstance(inputs, Tensor):
            return self._send(call, inputs, lettered)
        target = outputs if isinstance(outputs, Tensor) else None
        parcel = Parcel(self, call, target, device)
        if lettered:
            with self._lock:
                self._awaited.append(parcel)
                self._hand_out()  # its letter may have been read before, on the way to another one
            self.collect()
            Background.watch(self._transport)
        else:
            self._receive_directly(parcel)
        return parcel

    @contextmanager
    def together(self) -> Iterator[None]:
        """Data on CUDA that sets out inside does so in one NCCL group call."""
        with self._lock:
            batch: list[_Departing] = []
            self._batch = batch
            try:
                yield
            finally:
                self._batch = None
                _depart_together(self._transport.payload_group, batch)

    def _depart(self, parcel: Parcel, start: Callable[[], Payload]) -> None:
        """The data sets out, now or with the rest of its batch; where it cannot, ``parcel`` fails."""
        if self._batch is not None and parcel.device.type == "cuda":
            self._batch.append((parcel, start))
            return
        with self._failing(parcel):
            parcel.payload = start()

    @contextmanager
    def _failing(self, parcel: Parcel) -> Iterator[None]:
        """What torch cannot do for ``parcel`` ends the group, and is kept for its wait."""
        try:
            yield
        except RuntimeError as error:
            parcel.fail(error if isinstance(error, CollshimError) else self.lookout.broken(parcel, error))

    def _refuse_on_cuda(self, call: Call) -> None:
        """NCCL has no tags and no receive from anybody: it would hand out one message for another."""
        transport = self._transport
        if call.device != "cuda" or transport.size == 1:
            return
        if call.tag:
            raise ArgumentValueError(refusal(call.op, "tag", call.tag, "0 on CUDA", transport.rank, transport.size))
        if call.root is None and not transport.checks:
            wanted = "a rank on CUDA with the check off"
            raise ArgumentValueError(refusal(call.op, "source", None, wanted, transport.rank, transport.size))

    def _send(self, call: Call, tensor: Tensor, lettered: bool) -> Parcel:
        parcel = Parcel(self, call, None, tensor.device)
        parcel.arrived = True
        peer = call.root or 0
        if peer == self._transport.rank:
            self._keep(Letter(peer, 0, call, tensor.clone()))
            return parcel
        with self._failing(parcel):
            self.lookout.look_now_and_then()
            small = lettered and tensor.nbytes <= EAGER_BYTES and tensor.device.type == "cpu"
            tag = self._write(call, tensor if small else None, peer) if lettered else call.tag
            if not small:
                self._depart(parcel, partial(send, self._transport.payload_group, tensor, peer, tag))
        return parcel

    def _keep(self, letter: Letter) -> None:
        """A letter to this rank itself goes nowhere."""
        with self._lock:
            self._unclaimed.append(letter)
            self._hand_out()

    def _write(self, call: Call, tensor: Tensor | None, peer: int) -> int:
        number = self._sent[peer] = self._sent.get(peer, 0) + 1
        letter = Letter(self._transport.rank, number, call, tensor)
        place = self._store.add(self._count_key(peer), 1)
        self._store.set(self._letter_key(peer, place), letter.sealed())
        return _FIRST_NUMBER + number

    def _receive_directly(self, parcel: Parcel) -> None:
        group, call, target = self._transport.payload_group, parcel.call, parcel.target
        if target is None:
            if call.shape is None or call.dtype is None:
                raise AssertionError("without the check the receiver gives shape and dtype")
            target = parcel.target = torch.empty(call.shape, dtype=call.dtype, device=parcel.device)
        if call.root is None:
            parcel.payload = receive_from_anybody(group, target, call.tag)
        else:
            self._depart(parcel, partial(receive, group, target, call.root, call.tag))
        parcel.arrived = True

    def collect(self) -> None:
        """Take what letters have come, without waiting."""
        if self._awaited and self._store is not None and self._lock.acquire(blocking=False):
            try:
                while self._awaited and self._store.check([self._letter_key(self._transport.rank, self._read + 1)]):
                    self._take()
            except DistNetworkError as error:
                self.lookout.without_store(error)  # which fails what is awaited
            finally:
                self._lock.release()

    def await_letter(self, parcel: Parcel, limit: float | None) -> None:
        """Wait until this recv's letter has come."""
        if not parcel.arrived:
            self.lookout.keep(parcel, limit, partial(self._has_letter, parcel))

    def _has_letter(self, parcel: Parcel, seconds: float) -> bool:
        """Whether this recv's letter has come, after at most ``seconds``."""
        end = time.monotonic() + seconds
        with self._lock:
            while not parcel.arrived and self._next_by(end):
                self._take()
        return parcel.arrived

    def _next_by(self, end: float) -> bool:
        """Whether the next letter has come by then."""
        self._transport.refuse_if_broken()
        key = self._letter_key(self._transport.rank, self._read + 1)
        try:
            return comes_by(partial(self._store.check, [key]), end)
        except DistNetworkError as error:
            raise self.lookout.without_store(error) from error

    def _take(self) -> None:
        """Read the next letter and hand out what can be handed out; the lock is held."""
        self._read += 1
        key = self._letter_key(self._transport.rank, self._read)
        self._unclaimed.append(opened(self._store.get(key)))
        self._store.delete_key(key)
        self._hand_out()

    def _hand_out(self) -> None:
        for parcel in list(self._awaited):
            letter = next((known for known in self._unclaimed if known.fits(parcel.call)), None)
            if letter is not None and parcel in self._awaited:  # unless the one before it ended the group
                self._unclaimed.remove(letter)
                self._awaited.remove(parcel)
                self._deliver(letter, parcel)

    def _deliver(self, letter: Letter, parcel: Parcel) -> None:
        wrong = parcel.failure = objection_to_pair(letter.call, parcel.call, self._transport.ranks)
        with on_stream(parcel.stream):  # this may be the background's thread
            self._fill(letter, parcel, wrong is not None)
        parcel.source, parcel.announced = letter.source, True
        parcel.joint = letter.call.needs_grad
        parcel.arrived = True

    def _fill(self, letter: Letter, parcel: Parcel, unwanted: bool) -> None:
        shape, dtype = letter.call.shape or (), letter.call.dtype or torch.float32
        if parcel.target is None or unwanted:
            if parcel.call.device == "any" or unwanted:
                parcel.device = torch.device(letter.call.device)  # where it comes from: NCCL and gloo do not meet
            parcel.target = torch.empty(shape, dtype=dtype, device=parcel.device)
        if letter.data is None:
            tag = _FIRST_NUMBER + letter.number
            group = self._transport.payload_group
            self._depart(parcel, partial(receive, group, parcel.target, letter.source, tag))
        else:
            parcel.target.copy_(letter.data.view(shape))

    def await_data(self, parcel: Parcel, limit: float | None) -> None:
        """Wait until the data that follows a letter, or needs none, has moved."""
        works = [] if parcel.payload is None else parcel.payload.works
        try:
            for work in works:
                self.lookout.keep(parcel, limit, work.moved) if isinstance(work, PointToPoint) else work.wait()
                if parcel.call.op == "recv" and parcel.source is None:
                    anybody = parcel.call.root is None and isinstance(work, PointToPoint)
                    parcel.source = work.source() if anybody else parcel.call.root
        except RuntimeError as error:
            if isinstance(error, CollshimError):
                raise
            raise self.lookout.broken(parcel, error) from error
        parcel.payload = None

    def close(self) -> None:
        """Let go of the store."""
        self._store = None
        self._unclaimed.clear()

    def fail(self, failure: CollshimError) -> None:
        """Every recv that still waits fails."""
        for parcel in self._awaited:
            parcel.fail(failure)
        self._awaited.clear()

    def _count_key(self, peer: int) -> str:
        return f"{self._transport.key}/letters/{peer}"

    def _letter_key(self, peer: int, place: int) -> str:
        return f"{self._transport.key}/letters/{peer}/{place}"


def _depart_together(group: Any, batch: Sequence[_Departing]) -> None:
    """One group call per device: NCCL runs what it holds at the same time, and gives one work for all of it."""
    for device in {parcel.device for parcel, _ in batch}:
        parcels = [(parcel, start) for parcel, start in batch if parcel.device == device]
        group._start_coalescing(device)
        for _, start in parcels:
            start()
        work = group._end_coalescing(device)
        for parcel, _ in parcels:
            parcel.payload = Payload([work])
