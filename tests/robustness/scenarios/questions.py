"""Queries of every framework without a collective, by a rank or its threads; and calls that need the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import collshim
import collshim.megengine as mge
import collshim.megengine.functional as F
import collshim.oneflow as flow
import collshim.tensorflow as tf
import collshim.torch.distributed as dist
from collshim.megengine import distributed as megengine
from collshim.mindspore import Tensor, communication
from collshim.mindspore.communication import comm_func

PORT = 29_777
"""A port that nobody listens on, because the rank has its world already."""


def enter() -> None:
    """Initialize every framework that needs it."""
    own = collshim.current()
    dist.init_process_group("gloo")
    communication.init()
    megengine.init_process_group("localhost", PORT, own.size, own.rank, 0)


def answers() -> list[Any]:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    return [
        dist.is_initialized(),
        dist.get_rank(),
        dist.get_world_size(),
        dist.get_backend(),
        dist.get_process_group_ranks(None),
        dist.get_global_rank(dist.group.WORLD, 1),
        flow.env.get_rank(),
        flow.env.get_world_size(),
        communication.GlobalComm.INITED,
        communication.get_rank(),
        communication.get_group_size(),
        megengine.is_distributed(),
        megengine.get_rank(),
        megengine.get_world_size(),
        strategy.num_replicas_in_sync,
    ]


CALLS: dict[str, Callable[[], Any]] = {
    "torch's": lambda: dist.all_reduce(torch.ones(3)),
    "OneFlow's": lambda: flow.comm.all_reduce(flow.ones(3)),
    "MindSpore's": lambda: comm_func.all_reduce(Tensor(np.ones(3, np.float32))),
    "MegEngine's": lambda: F.distributed.all_reduce_sum(mge.tensor([1.0], device="cpux")),
}
