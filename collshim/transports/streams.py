"""Streams of a GPU: what a call's data follows, whichever thread moves it.

They are torch.Stream, of whatever accelerator torch has.

Between threads the one that does the work follows all ranks' streams, and all of these follow the work. If every rank
is on the same stream, as ranks are that never chose one, nothing has to be done.
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
"""The stream that a rank posted a call on, None on the CPU; its inputs and outputs."""


def stream_to_follow(call: Call, device: torch.device) -> torch.Stream | None:
    """This thread's stream for a call's data if it is on CUDA, which a rank that gives nothing cannot know yet."""
    if call.device == ACCELERATOR:
        return current_stream(device)
    return torch.accelerator.current_stream() if call.device == "any" and module().is_initialized() else None


def on_stream(stream: torch.Stream | None) -> AbstractContextManager[object]:
    """Work of this thread goes to ``stream``, and new tensors to its device; None changes nothing."""
    return nullcontext() if stream is None else module().stream(stream)


def hold(parts: Parts | None, stream: torch.Stream) -> None:
    """Keep the memory of ``parts`` from being handed out again before ``stream`` has come to here."""
    for tensor in () if parts is None else (parts,) if isinstance(parts, Tensor) else parts:
        tensor.record_stream(stream)  # of no effect where it was allocated for this stream


def follow(stream: torch.Stream, parts: Parts | None) -> None:
    """This thread's stream follows ``stream``, and ``parts`` are held for it too."""
    here = current_stream(stream.device)
    if here != stream:
        here.wait_event(stream.record_event())
        hold(parts, here)


class StreamOrder:
    """The order between the ranks' streams and those of the thread that does a call's work, on each GPU that has some.

    Made by that thread before the work. It keeps memory from being handed out again while another stream uses it. From
    one GPU to another torch copies on the thread's stream of the one, and lets that of the other follow.
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
        """Whether the ranks' streams are those of several GPUs."""
        return len(self._streams) > 1

    def finish(self) -> None:
        """The work has been posted."""
        if not self._alone or self.is_of_several:
            self._over = {device: stream.record_event() for device, stream in self._streams.items()}

    def follow(self, results: Parts | None, device: torch.device) -> None:
        """This thread's stream of ``device`` follows the work there, and ``results`` are held for it too."""
        own, stream = self._streams[device], current_stream(device)
        if stream != own:
            stream.wait_event(self._over.get(device) or own.record_event())
            hold(results, stream)
