"""How a rank gets ready in each framework: what every example begins with, and what the overview says."""

from __future__ import annotations

NAMES = {
    "torch": "PyTorch",
    "oneflow": "OneFlow",
    "mindspore": "MindSpore",
    "tensorflow": "TensorFlow",
    "megengine": "MegEngine",
}

STARTS = {
    "torch": """\
import torch
import collshim.torch.distributed as dist

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
""",
    "oneflow": """\
import collshim.oneflow as flow

rank, size = flow.env.get_rank(), flow.env.get_world_size()
""",
    "mindspore": """\
import collshim.mindspore as ms
from collshim.mindspore.communication import comm_func, get_group_size, get_rank, init

init()
rank, size = get_rank(), get_group_size()
""",
    "tensorflow": """\
import collshim.tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
replica = tf.distribute.get_replica_context
rank, size = strategy.run(lambda: replica().replica_id_in_sync_group), strategy.num_replicas_in_sync
""",
    "megengine": """\
import torch
import collshim
import collshim.megengine.distributed as dist
import collshim.megengine.functional as F

here = collshim.current()  # a function that dist.launcher starts finds this done
dist.init_process_group("localhost", 8000, here.size, here.rank, here.rank)
rank, size = dist.get_rank(), dist.get_world_size()
""",
}
