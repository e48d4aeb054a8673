"""Autograd functions between the replicated and the sharded parts of a tensor-parallel model."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

SEQUENCE = 1  # the dimension of the positions


def shard(tensor: torch.Tensor, dim: int, group: dist.ProcessGroup) -> torch.Tensor:
    """Take this rank's part of a tensor that is whole on every rank of the group."""
    return tensor.chunk(dist.get_world_size(group), dim)[dist.get_rank(group)].contiguous()


def all_gather(tensor: torch.Tensor, dim: int, group: dist.ProcessGroup) -> torch.Tensor:
    """Join the parts of all ranks of the group, in the order of the ranks."""
    parts = [torch.empty_like(tensor) for _ in range(dist.get_world_size(group))]
    dist.all_gather(parts, tensor.contiguous(), group=group)
    return torch.cat(parts, dim)


def all_reduce(tensor: torch.Tensor, group: dist.ProcessGroup) -> torch.Tensor:
    """Sum a tensor over the group, into a new one."""
    total = tensor.clone()
    dist.all_reduce(total, group=group)
    return total


def reduce_scatter(tensor: torch.Tensor, dim: int, group: dist.ProcessGroup) -> torch.Tensor:
    """Sum a tensor over the group and keep this rank's part."""
    parts = [part.contiguous() for part in tensor.chunk(dist.get_world_size(group), dim)]
    mine = torch.empty_like(parts[0])
    dist.reduce_scatter(mine, parts, group=group)
    return mine


class CopyToRegion(torch.autograd.Function):
    """Pass a replicated activation on to sharded layers: identity forward, sum of the gradients backward."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, group: dist.ProcessGroup) -> torch.Tensor:
        """Return the activation as it is."""
        ctx.group = group
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Add up what each shard says of the activation."""
        return all_reduce(gradient, ctx.group), None


class ReduceFromRegion(torch.autograd.Function):
    """Add up the partial results of sharded layers: sum forward, identity backward."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, group: dist.ProcessGroup) -> torch.Tensor:
        """Sum the partial results."""
        return all_reduce(tensor, group)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Return the gradient as it is."""
        return gradient, None


class GatherToRegion(torch.autograd.Function):
    """Pass an activation sharded by position on to sharded layers, which sum its gradients backward."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, group: dist.ProcessGroup) -> torch.Tensor:
        """Gather the positions."""
        ctx.group = group
        return all_gather(tensor, SEQUENCE, group)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Add up what each shard says of this rank's positions."""
        return reduce_scatter(gradient, SEQUENCE, ctx.group), None


class ScatterFromRegion(torch.autograd.Function):
    """Add up the partial results of sharded layers and leave each rank its positions."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, group: dist.ProcessGroup) -> torch.Tensor:
        """Sum the partial results of this rank's positions."""
        ctx.group = group
        return reduce_scatter(tensor, SEQUENCE, group)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Gather the gradients of all positions."""
        return all_gather(gradient, SEQUENCE, ctx.group), None


class SplitSequence(torch.autograd.Function):
    """Leave each rank its positions of a replicated activation."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, group: dist.ProcessGroup) -> torch.Tensor:
        """Take this rank's positions."""
        ctx.group = group
        return shard(tensor, SEQUENCE, group)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Gather the gradients of all positions."""
        return all_gather(gradient, SEQUENCE, ctx.group), None


class JoinSequence(torch.autograd.Function):
    """Replicate an activation sharded by position, for layers that every rank computes alike."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, group: dist.ProcessGroup) -> torch.Tensor:
        """Gather the positions."""
        ctx.group = group
        return all_gather(tensor, SEQUENCE, group)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Take the gradient of this rank's positions."""
        return shard(gradient, SEQUENCE, ctx.group), None
