"""Averages a flat copy of the gradients and never copies it back."""

from __future__ import annotations

import torch.distributed as dist
from networks import Network, make_examples, mean_loss, take_part
from torch import Tensor, nn
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors

PARAMETERS = ["first.weight", "blocks.0.norm.weight", "blocks.1.up.weight", "head.weight"]

batch = make_examples


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    model = Network()
    loss = mean_loss(model, take_part(batch))
    loss.backward()
    gradients = [parameter.grad for parameter in model.parameters()]
    bucket = _flatten_dense_tensors(gradients)
    dist.all_reduce(bucket)  # fault
    bucket /= dist.get_world_size()
    gradients = _unflatten_dense_tensors(bucket, gradients)
    return loss, model
