"""Messages between GPUs, through NCCL, which has no tags and no receive from any rank."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor

from collshim.accelerator import ACCELERATOR
from collshim.arrays.dtypes import NATIVE
from collshim.calls.call import Call
from collshim.errors import ArgumentValueError, CollshimError, refusal
from collshim.layout import as_bytes
from collshim.transports.processes.backend import coalesce, without_source
from collshim.transports.processes.group import Group
from collshim.transports.processes.port import Port
from collshim.transports.processes.request import MessageRequest

_Start = Callable[[], Any]


class NcclMessages:
    """The part of ``Messages`` that passes data to NCCL; ``Messages`` describes the attributes."""

    group: Group
    lock: threading.RLock
    _batch: list[tuple[MessageRequest, _Start]] | None = None

    @contextmanager
    def together(self) -> Iterator[None]:
        """Start all data on CUDA inside the block in one NCCL group call; if anything raises, start none of it."""
        with self.lock:
            batch = self._batch = list[tuple[MessageRequest, _Start]]()
            try:
                yield
            finally:
                self._batch = None
        for device in {message.device for message, _ in batch}:
            self._start_together(device, [entry for entry in batch if entry[0].device == device])

    def refuse_batch(self, calls: Sequence[Call]) -> None:
        """Raise an error if the messages cannot start together; on CUDA, both sides must know the shapes in advance."""
        group = self.group
        if group.size == 1 or not any(call.device == ACCELERATOR for call in calls):
            return
        for call in calls:
            if call.device == ACCELERATOR:
                self._refuse_on_cuda(call)
            if call.root is None and call.device != "cpu":
                expected = "a rank in a batch on CUDA"
                raise ArgumentValueError(refusal(call.op, "source", None, expected, group.rank, group.size))
            if (call.device == "any" or call.discovers) and call.root != group.rank:
                got, expected = "to be discovered", "known in a batch on CUDA: pass like or out, not discovers"
                raise ArgumentValueError(refusal(call.op, "shape", got, expected, group.rank, group.size))

    def _refuse_on_cuda(self, call: Call) -> None:
        """Raise an error if NCCL, which has no tags and no receive from any rank, could confuse two messages."""
        group = self.group
        if group.size == 1:
            return
        if call.tag:
            raise ArgumentValueError(refusal(call.op, "tag", call.tag, "0 on CUDA", group.rank, group.size))
        if call.root is None and not group.checks_on_cuda:
            expected = "a rank on CUDA with the check off"
            raise ArgumentValueError(refusal(call.op, "source", None, expected, group.rank, group.size))

    def _send_by_nccl(self, message: MessageRequest, tensor: Tensor, peer: int) -> None:
        self._start(message, partial(self._port().send, [_movable(tensor)], peer, 0), peer)

    def _receive_by_nccl(self, message: MessageRequest, source: int) -> None:
        call, target = message.plan.call, message.outputs
        if target is None:
            if call.shape is None or call.dtype is None:
                raise AssertionError("without the check the receiver passes shape and dtype")
            target = message.outputs = torch.empty(call.shape, dtype=call.dtype, device=message.device)
        message.arrived = True
        self._start(message, partial(self._port().recv, [_movable(target)], source, 0), source)

    def _start(self, message: MessageRequest, start: _Start, peer: int) -> None:
        """Start NCCL's transfer, now or with the rest of its batch; if that fails, so does ``message``."""
        if self._batch is not None:
            self._batch.append((message, start))
            return
        with keep_failure(message):
            self.group.launches.meet_peer(message, peer)
            self.group.launches.mark()
            message.work = start()
            self._add_launch(message, message.work)
            message.moved = True

    def _start_together(self, device: torch.device, batch: Sequence[tuple[MessageRequest, _Start]]) -> None:
        """Start a batch in one group call: NCCL runs its messages concurrently, with one work for all of them."""
        launches = self.group.launches
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
        message.launch = self.group.launches.add(message, work, message.stream)

    def _port(self) -> Port:
        self.group.refuse_if_broken()
        port: Port = self.group.connected_gpu_port()
        return port


def _movable(tensor: Tensor) -> Tensor:
    """Return a view that NCCL can move; one element for an empty tensor, since NCCL moves no empty data."""
    message = tensor.view(-1) if tensor.dtype in NATIVE else as_bytes(tensor)
    return message if message.numel() else message.new_zeros(1)


@contextmanager
def keep_failure(message: MessageRequest) -> Iterator[None]:
    """Keep torch's errors inside the block for the wait of ``message``."""
    try:
        yield
    except CollshimError as failure:
        message.fail(failure)
    except RuntimeError as error:
        message.end(without_source(error))
