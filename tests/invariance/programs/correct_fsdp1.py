"""A model under FullyShardedDataParallel."""

from __future__ import annotations

import torch
from networks import Block, Network, make_examples, mean_loss, take_part
from torch import Tensor, nn
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

batch = make_examples


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    model = FullyShardedDataParallel(
        Network(), auto_wrap_policy=ModuleWrapPolicy({Block}), use_orig_params=True, device_id=torch.device("cpu")
    )
    loss = mean_loss(model, take_part(batch))
    loss.backward()
    return loss, model
