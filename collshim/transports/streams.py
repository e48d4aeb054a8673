"""Streams of a GPU: what a call's data follows, whichever thread moves it.

They are torch.Stream, of whatever accelerator torch has.

Between threads the one that does the work follows all ranks' streams, and all of these follow the work. Where every
rank is on the same stream, as ranks are that never chose one, nothing has to be done.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from collshim.accelerator import ACCELERATOR, current_stream, module
from collshim.calls.call import Call
from collshim.errors import CommunicationError, MismatchError
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
    """The order between the ranks' streams, all of one GPU, and that of the thread that does a call's work.

    Made by that thread before the work. It keeps memory from being handed out again while another stream uses it.
    """

    def __init__(self, ranks: Sequence[Posted]) -> None:
        streams = [stream for stream, _, _ in ranks if stream is not None]
        self._stream = current_stream(streams[0].device)
        self._over: Any = None
        self._alone = all(stream == self._stream for stream in streams)
        for stream, inputs, outputs in ranks:
            if stream is not None and stream != self._stream:
                self._stream.wait_stream(stream)
                hold(inputs, self._stream)
                hold(outputs, self._stream)

    def finish(self) -> None:
        """The work has been posted."""
        self._over = None if self._alone else self._stream.record_event()

    def follow(self, results: Parts | None) -> None:
        """This thread's stream follows the work, and ``results`` are held for it too."""
        stream = current_stream(self._stream.device)
        if stream != self._stream:
            stream.wait_event(self._over or self._stream.record_event())
            hold(results, stream)


def several_gpus(arrivals: Sequence[Any]) -> CommunicationError | None:
    """The failure of threads' calls on several GPUs: they share one, since no kernel reads several."""
    if len({arrival.plan.device for arrival in arrivals if arrival.stream is not None}) < 2:
        return None
    places = ", ".join(f"rank {arrival.rank} on {arrival.plan.device}" for arrival in arrivals)
    name = arrivals[0].plan.call.name
    return MismatchError(f"{name}: ranks that are threads share one GPU, these are on several: {places}")
