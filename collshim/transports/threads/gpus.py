"""Calls of ranks that are threads with a GPU each: every result is computed on its own rank's GPU.

All inputs that a result needs are copied to the result's GPU before anything is written, since results can overlap
inputs. torch copies between GPUs on the source's stream, and makes the destination's stream wait for the copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from collshim.accelerator import ACCELERATOR, current_stream
from collshim.calls.call import Call
from collshim.layout import Parts
from collshim.transports.compute import Computation, Inputs, Outputs
from collshim.transports.streams import StreamOrder


def compute_on_gpus(
    order: StreamOrder, compute: Computation, call: Call, inputs: Inputs, outputs: Outputs, ranks: Sequence[int]
) -> None:
    """Run ``compute`` for the results of these ranks, whose outputs are allocated, on the outputs' GPUs."""
    if order.is_of_several:
        devices = {rank: _device_of(outputs[rank]) for rank in ranks}
        owners = {device: [rank for rank in ranks if devices[rank] == device] for device in {*devices.values()}}
        copies = {device: _copy_inputs(call, inputs, own, device) for device, own in owners.items()}
        for device, own in owners.items():
            compute(copies[device], outputs, own)
    else:
        compute(inputs, outputs, ranks)
    order.finish()


def follow_work(order: StreamOrder, stream: torch.Stream | None, outputs: Parts | None) -> Parts | None:
    """Make this thread's stream wait for the work, and return a rank's outputs; ``stream`` is the stream of its post.

    The result of a rank without an input is moved to the rank's own GPU.
    """
    if stream is not None:
        order.follow(outputs, stream.device)
        return outputs
    if outputs is None:
        return None
    order.follow(outputs, _device_of(outputs))
    return _move(outputs, current_stream(torch.device(ACCELERATOR)).device)


def _device_of(parts: Parts) -> torch.device:
    return parts.device if isinstance(parts, Tensor) else parts[0].device


def _move(parts: Parts, device: torch.device) -> Parts:
    """Copy parts to a device, in the same form."""
    if isinstance(parts, Tensor):
        return parts.to(device, non_blocking=True)
    return [part.to(device, non_blocking=True) for part in parts]


def _copy_inputs(call: Call, inputs: Inputs, ranks: Sequence[int], device: torch.device) -> list[Any]:
    """Copy to the device the parts of each rank's input that the results of ``ranks`` need."""
    givers = range(len(inputs)) if call.collective.givers == "all" else [call.root or 0]
    found: list[Any] = [None] * len(inputs)
    for giver in givers:
        parts = inputs[giver]
        if call.collective.gives == "parts":
            found[giver] = {rank: parts[rank].to(device, non_blocking=True) for rank in ranks}
        elif parts is not None:
            found[giver] = _move(parts, device)
    return found
