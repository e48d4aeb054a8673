"""CUDA streams: the order between a call's data and the ranks' streams, whichever thread moves the data.

Streams are torch.Stream objects of whichever accelerator torch has.

Between threads, the thread that does the work makes its streams follow those of all ranks, and these then follow the
work. If all ranks use the same stream, as they do unless they choose one, there is nothing to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from collshim.accelerator import ACCELERATOR, current_stream, module
from collshim.calls.call import Call
from collshim.layout import Parts

Posted = tuple["torch.Stream | None", "Parts | None", "Parts | None"]
"""The stream on which a rank posted a call, None on the CPU; the call's inputs and outputs."""


def stream_to_follow(call: Call, device: torch.device) -> torch.Stream | None:
    """Return this thread's stream if the call's data might be on CUDA: a rank without an input cannot know yet."""
    if call.device == ACCELERATOR:
        return current_stream(device)
    return torch.accelerator.current_stream() if call.device == "any" and module().is_initialized() else None


def on_stream(stream: torch.Stream | None) -> AbstractContextManager[object]:
    """Direct this thread's work to ``stream``, and new tensors to its device; None changes nothing."""
    return nullcontext() if stream is None else module().stream(stream)


def hold(parts: Parts | None, stream: torch.Stream) -> None:
    """Keep the memory of ``parts`` from being reused before ``stream`` has reached this point."""
    for tensor in () if parts is None else (parts,) if isinstance(parts, Tensor) else parts:
        tensor.record_stream(stream)  # no effect if it was allocated on this stream


def follow(stream: torch.Stream, parts: Parts | None) -> None:
    """Make this thread's stream follow ``stream``, and hold ``parts`` for it too."""
    here = current_stream(stream.device)
    if here != stream:
        here.wait_event(stream.record_event())
        hold(parts, here)


class StreamOrder:
    """The order, on each GPU in use, between the ranks' streams and those of the thread that does a call's work.

    That thread makes it before the work. It keeps memory from being reused while another stream still uses it. For a
    copy between two GPUs torch uses the thread's stream of the first, and makes the stream of the second follow it.
    """

    def __init__(self, ranks: Sequence[Posted]) -> None:
        streams = [stream for stream, _, _ in ranks if stream is not None]
        self._streams = {stream.device: current_stream(stream.device) for stream in streams}
        self._over: dict[torch.device, Any] = {}
        self._alone = all(stream == self._streams[stream.device] for stream in streams)
        for stream, inputs, outputs in ranks:
            if stream is None:
                continue
            own = self._streams[stream.device]
            if stream != own:
                own.wait_stream(stream)
                hold(inputs, own)
                hold(outputs, own)

    @property
    def is_of_several(self) -> bool:
        """Whether the ranks' streams belong to several GPUs."""
        return len(self._streams) > 1

    def finish(self) -> None:
        """Record that the work has been enqueued."""
        if not self._alone or self.is_of_several:
            self._over = {device: stream.record_event() for device, stream in self._streams.items()}

    def follow(self, results: Parts | None, device: torch.device) -> None:
        """Make this thread's stream of ``device`` follow the work there, and hold ``results`` for it too."""
        own, stream = self._streams[device], current_stream(device)
        if stream != own:
            stream.wait_event(self._over.get(device) or own.record_event())
            hold(results, stream)
