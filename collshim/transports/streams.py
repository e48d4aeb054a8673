"""CUDA streams: what a call's data follows, whichever thread moves it.

Between threads the one that does the work follows all ranks' streams, and all of these follow the work. Where every
rank is on the same stream, as ranks are that never chose one, nothing has to be done.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor

from collshim.calls.call import Call
from collshim.layout import Parts


class Place(NamedTuple):
    """One rank's tensors of a call, and the stream that it posted the call on; None on the CPU."""

    stream: torch.cuda.Stream | None
    inputs: Parts | None
    outputs: Parts | None


def stream_of(device: torch.device) -> torch.cuda.Stream | None:
    """This thread's current stream of ``device``; None for the CPU."""
    return torch.cuda.current_stream(device) if device.type == "cuda" else None


def stream_to_follow(call: Call, device: torch.device) -> torch.cuda.Stream | None:
    """This thread's stream for a call's data if it is on CUDA, which a rank that gives nothing cannot know yet."""
    if call.device == "cuda":
        return torch.cuda.current_stream(device)
    return torch.cuda.current_stream() if call.device == "any" and torch.cuda.is_initialized() else None


def on_stream(stream: torch.cuda.Stream | None) -> AbstractContextManager[object]:
    """Work of this thread goes to ``stream``, and new tensors to its device; None changes nothing."""
    return nullcontext() if stream is None else torch.cuda.stream(stream)


def hold(parts: Parts | None, stream: torch.cuda.Stream) -> None:
    """Keep the memory of ``parts`` from being handed out again before ``stream`` has come to here."""
    for tensor in () if parts is None else (parts,) if isinstance(parts, Tensor) else parts:
        tensor.record_stream(stream)  # of no effect where it was allocated for this stream


class Crossing:
    """The order between the ranks' streams and those of the thread that does a call's work.

    Made by that thread before the work. It keeps memory from being handed out again while another stream uses it.
    """

    def __init__(self, places: Sequence[Place]) -> None:
        theirs = [place.stream for place in places if place.stream is not None]
        self._mine = {stream.device: torch.cuda.current_stream(stream.device) for stream in theirs}
        self._over: Sequence[Any] = ()
        self._alone = all(stream == self._mine[stream.device] for stream in theirs)
        for place in places:
            if place.stream is not None and place.stream != self._mine[place.stream.device]:
                self._mine[place.stream.device].wait_stream(place.stream)
                self._hold(place.inputs)
                self._hold(place.outputs)

    def _hold(self, parts: Parts | None) -> None:
        for tensor in _on_gpu(parts):
            tensor.record_stream(self._mine[tensor.device])

    def finish(self) -> None:
        """The work has been posted."""
        self._over = () if self._alone else [stream.record_event() for stream in self._mine.values()]

    def follow(self, results: Parts | None) -> None:
        """This thread's streams follow the work, and ``results`` are held for them too."""
        for device, done in self._mine.items():
            stream = torch.cuda.current_stream(device)
            if stream != done:
                for event in self._over or [done.record_event()]:
                    stream.wait_event(event)
                for tensor in _on_gpu(results):
                    tensor.record_stream(torch.cuda.current_stream(tensor.device))


def _on_gpu(parts: Parts | None) -> Iterator[Tensor]:
    tensors = [] if parts is None else [parts] if isinstance(parts, Tensor) else parts
    return (tensor for tensor in tensors if tensor.device.type == "cuda")
