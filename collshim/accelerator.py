"""torch's accelerator in this process, and the name of the backend that carries its tensors.

Tested only with CUDA, which is also torch's name for AMD's GPUs (RCCL). The others differ from it by a row here and by
the answers of torch's modules of their names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_BACKENDS = {"cuda": "NCCL", "xpu": "XCCL", "npu": "HCCL"}
"""By device type; npu is torch_npu's, a plugin."""


def _type() -> str:
    try:
        found = torch.accelerator.current_accelerator()
    except RuntimeError:  # torch 2.6 raises this if there is none
        found = None
    return found.type if found is not None and found.type in _BACKENDS else "cuda"


ACCELERATOR = _type()
"""The device type of its tensors; "cuda" if there is none."""

BACKEND = _BACKENDS[ACCELERATOR]

_stream_of: Any = getattr(torch._C, "_accelerator_getStream", torch.accelerator.current_stream)
"""Returns a stream in a third of the time of torch.accelerator.current_stream, which calls it."""

stream_handle: Callable[[int], Any] = getattr(torch._C, f"_{ACCELERATOR}_getCurrentRawStream", _stream_of)
"""Identifies this thread's stream of a device: by a number, in a third of the time of the stream, or by the stream."""


def _cuda_handle(number: int) -> int:
    return int(torch.cuda.current_stream(number).cuda_stream)


cuda_handle: Callable[[int], int] = getattr(torch._C, "_cuda_getCurrentRawStream", _cuda_handle)
"""Returns CUDA's handle of this thread's stream of a device."""

is_capturing: Callable[[], bool] = getattr(
    torch._C, "_cuda_isCurrentStreamCapturing", torch.cuda.is_current_stream_capturing
)
"""Returns whether this thread's work is being captured into a CUDA graph."""

_STREAMS: dict[tuple[int, Any], torch.Stream] = {}
"""Streams by device and handle."""

_KEPT = 1024


def module() -> Any:
    """Return ``torch.cuda``, or its counterpart."""
    return getattr(torch, ACCELERATOR)  # not get_device_module, which asks torch.device: pretended GPUs replace that


def current_stream(device: torch.device) -> torch.Stream:
    """Return this thread's stream of the device; of the current device if it has no index."""
    number = device.index
    if number is None:
        number = torch.accelerator.current_device_index()
    stream = _STREAMS.get((number, stream_handle(number)))
    if stream is None:
        if len(_STREAMS) >= _KEPT:
            _STREAMS.clear()
        stream = _STREAMS[number, stream_handle(number)] = _stream_of(number)
    return stream
