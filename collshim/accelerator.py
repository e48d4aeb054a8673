"""torch's accelerator in this process, and the name of the backend that carries its tensors.

Run and tested with CUDA alone, which is also the name of AMD's GPUs (RCCL). The others differ from it by a row here and
by what torch's modules of their names say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_BACKENDS = {"cuda": "NCCL", "xpu": "XCCL", "npu": "HCCL"}
"""By device type; npu is that of torch_npu, a plugin."""


def _type() -> str:
    try:
        found = torch.accelerator.current_accelerator()
    except RuntimeError:  # in torch 2.6, where there is none
        found = None
    return found.type if found is not None and found.type in _BACKENDS else "cuda"


ACCELERATOR = _type()
"""The device type of its tensors; "cuda" where there is none."""

BACKEND = _BACKENDS[ACCELERATOR]

_stream_of: Any = getattr(torch._C, "_accelerator_getStream", torch.accelerator.current_stream)
"""Beneath torch.accelerator.current_stream, which costs three times as much."""

stream_handle: Callable[[int], Any] = getattr(torch._C, f"_{ACCELERATOR}_getCurrentRawStream", _stream_of)
"""What tells this thread's stream of a device from others: a number, which costs a third of the stream, or that."""

is_capturing: Callable[[], bool] = getattr(
    torch._C, "_cuda_isCurrentStreamCapturing", torch.cuda.is_current_stream_capturing
)
"""Whether what this thread posts is captured into a CUDA graph."""

_STREAMS: dict[tuple[int, Any], torch.Stream] = {}
"""Streams by device and handle."""

_KEPT = 1024


def module() -> Any:
    """``torch.cuda``, or its like."""
    return torch.get_device_module(ACCELERATOR)


def current_stream(device: torch.device) -> torch.Stream:
    """This thread's stream of the device; of the current one where no index is given."""
    number = device.index
    if number is None:
        number = torch.accelerator.current_device_index()
    stream = _STREAMS.get((number, stream_handle(number)))
    if stream is None:
        if len(_STREAMS) >= _KEPT:
            _STREAMS.clear()
        stream = _STREAMS[number, stream_handle(number)] = _stream_of(number)
    return stream
