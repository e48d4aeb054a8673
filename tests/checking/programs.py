"""Programs with a mistake that ``collshim check`` finds; ``right_programs`` has similar ones without a mistake."""

from __future__ import annotations

TORCH = """\
import os
import sys
import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

rank, world_size = dist.get_rank(), dist.get_world_size()
"""
MINDSPORE = """\
import mindspore as ms
from mindspore import Tensor, mint, nn, ops
from mindspore.communication import comm_func, get_group_size, get_rank
from mindspore.mint import distributed as mdist
"""
WORKERS = """\
import json
import os
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
resolver = strategy.cluster_resolver
task_type, task_id = resolver.task_type, resolver.task_id
"""
OTHERS = """\
import megengine.distributed as mdist
import megengine.functional as F
import oneflow as flow
import tensorflow as tf
"""
NET = """\
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.reduce = ops.AllReduce()

    def construct(self, x):
        {line}
"""

# The rule, the imports, and a program with one mistake, on the line that ends in "# here".
WRONG = {
    "a barrier of rank 0": ("rank-branch", TORCH, "if rank == 0:\n    dist.barrier()  # here"),
    "a call's result": ("rank-branch", TORCH, "if dist.get_rank() == 0:\n    dist.all_reduce(x)  # here"),
    "an environment variable": (
        "rank-branch",
        TORCH,
        "if int(os.environ['RANK']) == 0:\n    dist.broadcast(x, 0)  # here",
    ),
    "an attribute": (
        "rank-branch",
        TORCH,
        "def f(self):\n    if self.local_rank == 0:\n        dist.barrier()  # here",
    ),
    "a negation": ("rank-branch", TORCH, "if not rank:\n    dist.barrier()  # here"),
    "a part of a tuple": (
        "rank-branch",
        TORCH,
        "def f():\n    size, own_rank = sizes()\n    if own_rank == 0:\n        dist.barrier()  # here",
    ),
    "a function that asks": ("rank-branch", TORCH, "if is_main_process():\n    dist.barrier()  # here"),
    "one more than the others": (
        "rank-branch",
        TORCH,
        "if rank == 0:\n    dist.barrier()\n    dist.all_reduce(x)  # here\nelse:\n    dist.barrier()",
    ),
    "a return before": (
        "rank-branch",
        TORCH,
        "def f():\n    if rank != 0:\n        return\n    dist.barrier()  # here",
    ),
    "a continue before": (
        "rank-branch",
        TORCH,
        "for x in xs:\n    if rank != 0:\n        continue\n    dist.all_reduce(x)  # here",
    ),
    "a function that calls one": (
        "rank-branch",
        TORCH,
        "def sync(x):\n    dist.all_reduce(x)\nif rank == 0:\n    sync(x)  # here",
    ),
    "objects": ("rank-branch", TORCH, "if rank > 0:\n    dist.broadcast_object_list(x)  # here"),
    "a new group": ("rank-branch", TORCH, "if rank < 2:\n    g = dist.new_group([0, 1])  # here"),
    "MindSpore's primitive": (
        "rank-branch",
        MINDSPORE,
        NET.format(line="if get_rank() == 0:\n            return self.reduce(x)  # here\n        return x"),
    ),
    "OneFlow": ("rank-branch", OTHERS, "if flow.env.get_rank() == 0:\n    flow.comm.all_reduce(x)  # here"),
    "MegEngine": ("rank-branch", OTHERS, "if mdist.get_rank() == 0:\n    F.distributed.all_reduce_sum(x)  # here"),
    "a worker's number": (
        "rank-branch",
        WORKERS,
        "if strategy.cluster_resolver.task_id == 0:\n    strategy.reduce('SUM', x, axis=None)  # here",
    ),
    "a worker's number in a tuple": (
        "rank-branch",
        WORKERS,
        "def save():\n    if task_id == 0:\n        strategy.gather(x, axis=0)  # here",
    ),
    "a worker's type": (
        "rank-branch",
        WORKERS,
        "chief = task_type == 'chief'\nif chief:\n    strategy.gather(x, axis=0)  # here",
    ),
    "the variable TF_CONFIG": (
        "rank-branch",
        WORKERS,
        "index = json.loads(os.environ['TF_CONFIG'])['task']['index']\nif index == 0:\n"
        "    strategy.reduce('SUM', x, axis=None)  # here",
    ),
    "a function that asks for the chief": (
        "rank-branch",
        WORKERS,
        "def _is_chief(kind, number):\n    return kind == 'chief' or number == 0\n"
        "if _is_chief(task_type, task_id):\n    strategy.reduce('SUM', x, axis=None)  # here",
    ),
    "a function that compares the worker's number": (
        "rank-branch",
        WORKERS,
        "def writes():\n    return task_type is None or task_id == 0\nif writes():\n"
        "    strategy.reduce('SUM', x, axis=None)  # here",
    ),
    "a replica's number": (
        "rank-branch",
        WORKERS,
        "def step(x):\n    context = tf.distribute.get_replica_context()\n"
        "    number = context.replica_id_in_sync_group\n"
        "    if number == 0:\n        context.all_reduce('SUM', x)  # here",
    ),
    "a merge": (
        "rank-branch",
        WORKERS,
        "def step(x):\n    context = tf.distribute.get_replica_context()\n"
        "    if context.replica_id_in_sync_group == 0:\n        context.merge_call(add, args=(x,))  # here",
    ),
    "a rank or a constant": (
        "rank-branch",
        TORCH,
        "own = dist.get_rank() if dist.is_initialized() else 0\nif own == 0:\n    dist.barrier()  # here",
    ),
    "an exit before": ("rank-branch", TORCH, "if rank == 0:\n    sys.exit(0)\ndist.barrier()  # here"),
    "an exit before, by an exception": (
        "rank-branch",
        TORCH,
        "if rank == 0:\n    raise SystemExit\ndist.barrier()  # here",
    ),
    "no call on one of several paths": (
        "rank-branch",
        TORCH,
        "def save(model):\n    if rank != 0:\n        return\n    if parts == 1:\n        dist.barrier()  # here\n"
        "    else:\n        write(model)",
    ),
    "a return on one line": (
        "rank-branch",
        TORCH,
        "def f():\n    if rank != 0: return\n    dist.barrier()  # here",
    ),
    "a conditional expression": ("rank-branch", TORCH, "dist.barrier() if rank == 0 else None  # here"),
    "a condition with `and`": ("rank-branch", TORCH, "rank == 0 and dist.barrier()  # here"),
    "a match": ("rank-branch", TORCH, "match dist.get_rank():\n    case 0:\n        dist.barrier()  # here"),
    "a loop over the rank": ("rank-loop", TORCH, "for i in range(rank):\n    dist.all_reduce(x)  # here"),
    "two orders": (
        "branch-order",
        TORCH,
        "if rank == 0:  # here\n    dist.broadcast(x, 0)\n    dist.all_reduce(x)\nelse:\n    dist.all_reduce(x)\n"
        "    dist.broadcast(x, 0)",
    ),
    "torch's result": ("in-place-result", TORCH, "y = dist.all_reduce(x)  # here\nprint(y + 1)"),
    "torch's result, computed with": ("in-place-result", TORCH, "y = dist.all_reduce(x) / 2  # here"),
    "a wait on None": ("in-place-result", TORCH, "dist.all_reduce(x).wait()  # here"),
    "torch's result, passed on": ("in-place-result", TORCH, "print(dist.all_reduce(x))  # here"),
    "OneFlow's result": ("in-place-result", OTHERS, "y = flow.comm.all_reduce(x)  # here\nprint(y)"),
    "mint's result": ("in-place-result", MINDSPORE, "y = mdist.all_reduce(x)  # here\nprint(y.sum())"),
    "a pair": ("pair-as-tensor", MINDSPORE, "y = comm_func.all_reduce(x)  # here\nprint(y.asnumpy())"),
    "a pair, computed with": ("pair-as-tensor", MINDSPORE, "y = comm_func.all_reduce(x) / 2  # here"),
    "a pair's attribute": ("pair-as-tensor", MINDSPORE, "print(comm_func.all_gather_into_tensor(x).shape)  # here"),
    "a pair, beside a function's variable": (
        "pair-as-tensor",
        MINDSPORE,
        "y = comm_func.all_gather_into_tensor(x)  # here\nz = y * 2\ndef f(y):\n    return net(y)",
    ),
    "a pair as loss": (
        "pair-as-tensor",
        MINDSPORE,
        "def forward(x):\n    loss = net(x)\n    loss = comm_func.all_reduce(loss)  # here\n    return loss\n"
        "step = ms.value_and_grad(forward, None, net.trainable_params())",
    ),
    "an argument as option": ("tensor-to-primitive", MINDSPORE, "def f(x):\n    return ops.AllReduce(x)  # here"),
    "a tensor as option": (
        "tensor-to-primitive",
        MINDSPORE,
        NET.format(line="return ops.AllReduce(x)  # here"),
    ),
    "a made tensor as option": ("tensor-to-primitive", MINDSPORE, "t = Tensor([1.0])\ny = ops.AllReduce(t)  # here"),
    "a reduced loss": (
        "cut-gradient",
        TORCH,
        "def step(model, x):\n    loss = model(x)\n    dist.all_reduce(loss)  # here\n    loss = loss / world_size\n"
        "    loss.backward()",
    ),
    "a gathered embedding": (
        "cut-gradient",
        TORCH,
        "def step(model, x):\n    features = model(x)\n    dist.all_reduce(features)  # here\n"
        "    total = (features * features).sum()\n    total.backward()",
    ),
    "a model's output, squared": (
        "cut-gradient",
        TORCH,
        "net = torch.nn.Linear(2, 2)\nemb = net(x)\ndist.all_reduce(emb)  # here\n"
        "total = (emb ** 2).sum()\ntotal.backward()",
    ),
    "a model's output of any name": (
        "cut-gradient",
        TORCH,
        "def step(model, x):\n    a = model(x)\n    dist.all_reduce(a)  # here\n    (a ** 2).sum().backward()",
    ),
    "a gathered output": (
        "cut-gradient",
        TORCH,
        "def step(model, x, y):\n    logits = model(x)\n    parts = [torch.empty_like(logits) for _ in range(2)]\n"
        "    dist.all_gather(parts, logits)  # here\n    loss = criterion(torch.cat(parts), y)\n    loss.backward()",
    ),
    "a mean divided": (
        "mean-divided",
        TORCH,
        "dist.all_reduce(x, op=ReduceOp.AVG)\nx /= dist.get_world_size()  # here",
    ),
    "a mean divided by a method": (
        "mean-divided",
        TORCH,
        "dist.all_reduce(x, dist.ReduceOp.AVG)\nx.div_(world_size)  # here",
    ),
    "TensorFlow's mean": (
        "mean-divided",
        OTHERS,
        "strategy = tf.distribute.MirroredStrategy()\ndef f(x):\n"
        "    context = tf.distribute.get_replica_context()\n"
        "    total = context.all_reduce('MEAN', x)\n    return total / strategy.num_replicas_in_sync  # here",
    ),
}
