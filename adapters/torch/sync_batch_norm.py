"""SyncBatchNorm on pretended GPUs: torch computes it only on GPUs. Conventions of torch 2.13.0."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed.nn.functional as differentiable
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm


def on_cpu(forward: Callable[[Any, Tensor], Tensor]) -> Callable[[Any, Tensor], Tensor]:
    """Return SyncBatchNorm's ``forward`` for tensors on the CPU: it normalizes by all ranks' mean and variance."""

    @functools.wraps(forward)
    def call(self: Any, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        self._check_non_zero_input_channels(input)
        group = self.process_group or torch.distributed.group.WORLD
        if not self.training or group is None or group.size() == 1:
            return _BatchNorm.forward(self, input)
        return _normalized(self, input, group)

    return call


def _normalized(layer: Any, input: Tensor, group: Any) -> Tensor:
    axes, channels = [0, *range(2, input.dim())], input.shape[1]
    values = input.double()  # a difference of squares loses half of the digits
    count = values.new_tensor([input.numel() / channels])
    own = torch.cat([values.sum(axes), values.square().sum(axes), count])
    total = differentiable.all_reduce(own, group=group)
    rows = total[-1].detach()
    mean = total[:channels] / rows
    variance = total[channels:-1] / rows - mean.square()
    if layer.track_running_stats:
        _track(layer, mean.detach(), variance.detach() * rows / (rows - 1))
    shape = [1, channels, *[1] * (input.dim() - 2)]
    found = (values - mean.view(shape)) / (variance.view(shape) + layer.eps).sqrt()
    if layer.affine:
        found = found * layer.weight.view(shape) + layer.bias.view(shape)
    result: Tensor = found.to(input.dtype)
    return result


def _track(layer: Any, mean: Tensor, variance: Tensor) -> None:
    """Move the running statistics towards these; by the number of batches if the layer has no momentum."""
    layer.num_batches_tracked.add_(1)
    share = 1 / float(layer.num_batches_tracked) if layer.momentum is None else layer.momentum
    layer.running_mean.lerp_(mean.to(layer.running_mean.dtype), share)
    layer.running_var.lerp_(variance.to(layer.running_var.dtype), share)
