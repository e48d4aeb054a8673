"""Which GPU a rank's process has: that of its number on the machine, as far as there are as many."""

from __future__ import annotations

from typing import Any

import torch

from collshim.accelerator import module
from collshim.importing import when_imported


def take_gpu(local_rank: int) -> None:
    """Let the GPU be torch's and CuPy's current one, once the process first uses CUDA and once it imports CuPy.

    A program that chooses a device itself, then or later, has that one. Neither is imported, nor a GPU touched, here.
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
    """How many GPUs CuPy sees beside a torch without CUDA; 0 if there are none, which CuPy says when it is used."""
    try:
        return int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError:
        return 0
