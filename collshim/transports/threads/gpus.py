"""A call of ranks that are threads and have a GPU each: every result is computed on its own rank's GPU.

What the other ranks give is copied there first, all of it that the result needs, before anything is written: results
may lie where inputs are. torch copies from GPU to GPU on the sender's stream, and lets the receiver's follow.
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
    """``compute`` the results of these ranks, whose outputs are there, on the GPUs that these are on."""
    if order.is_of_several:
        places = {rank: _device_of(outputs[rank]) for rank in ranks}
        owners = {device: [rank for rank in ranks if places[rank] == device] for device in {*places.values()}}
        copies = {device: _moved(call, inputs, own, device) for device, own in owners.items()}
        for device, own in owners.items():
            compute(copies[device], outputs, own)
    else:
        compute(inputs, outputs, ranks)
    order.finish()


def followed(order: StreamOrder, stream: torch.Stream | None, outputs: Parts | None) -> Parts | None:
    """A rank's outputs, once this thread's stream follows the work; ``stream`` is that of its post.

    What a rank gets that gave nothing goes to its own GPU.
    """
    if stream is not None:
        order.follow(outputs, stream.device)
        return outputs
    if outputs is None:
        return None
    order.follow(outputs, _device_of(outputs))
    return _on(outputs, current_stream(torch.device(ACCELERATOR)).device)


def _device_of(parts: Parts) -> torch.device:
    return parts.device if isinstance(parts, Tensor) else parts[0].device


def _on(parts: Parts, device: torch.device) -> Parts:
    """The parts there, in the same form."""
    if isinstance(parts, Tensor):
        return parts.to(device, non_blocking=True)
    return [part.to(device, non_blocking=True) for part in parts]


def _moved(call: Call, inputs: Inputs, ranks: Sequence[int], device: torch.device) -> list[Any]:
    """Of what each rank gives, what the results of ``ranks`` need, on their device."""
    givers = range(len(inputs)) if call.collective.givers == "all" else [call.root or 0]
    found: list[Any] = [None] * len(inputs)
    for giver in givers:
        parts = inputs[giver]
        if call.collective.gives == "parts":
            found[giver] = {rank: parts[rank].to(device, non_blocking=True) for rank in ranks}
        elif parts is not None:
            found[giver] = _on(parts, device)
    return found
