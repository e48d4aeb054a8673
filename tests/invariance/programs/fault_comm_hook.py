"""Sums the buckets of DistributedDataParallel in a hook, which has to divide them itself."""

import torch
import torch.distributed as dist
from networks import Network, make_examples, mean_loss, take_part
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

PARAMETERS = ["first.weight", "blocks.0.norm.weight", "blocks.1.up.weight", "head.weight"]

batch = make_examples


def reduce(state: None, bucket: dist.GradBucket) -> torch.futures.Future[Tensor]:
    """Sum a bucket over the ranks."""
    buffer = bucket.buffer()
    return dist.all_reduce(buffer, async_op=True).get_future().then(lambda future: future.value()[0])  # fault


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    model = DistributedDataParallel(Network())
    model.register_comm_hook(None, reduce)
    loss = mean_loss(model, take_part(batch))
    loss.backward()
    return loss, model.module
