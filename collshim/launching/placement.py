"""Choose the GPU of a rank's process: its local rank, modulo the number of GPUs."""

from __future__ import annotations

from typing import Any

import torch

from collshim.accelerator import module
from collshim.importing import when_imported


def take_gpu(local_rank: int) -> None:
    """Make this GPU the current one in torch when the process first uses CUDA, and in CuPy when it imports CuPy.

    A device that the program itself chooses, before or after, takes precedence. This imports nothing and uses no GPU.
    """
    torch.cuda._lazy_call(lambda: _take_for_torch(local_rank))
    when_imported("cupy", lambda cupy: _take_for_cupy(cupy, local_rank))


def _take_for_torch(local_rank: int) -> None:
    gpus = module()
    gpus.set_device(local_rank % gpus.device_count())


def _take_for_cupy(cupy: Any, local_rank: int) -> None:
    count = module().device_count() or _seen_by(cupy)
    if count:
        cupy.cuda.Device(local_rank % count).use()


def _seen_by(cupy: Any) -> int:
    """Return how many GPUs CuPy sees if torch lacks CUDA; 0 if there are none, which CuPy reports when it is used."""
    try:
        return int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError:
        return 0
