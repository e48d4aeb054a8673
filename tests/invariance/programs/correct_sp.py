"""A transformer in tensor and sequence parallel."""

from __future__ import annotations

import torch.distributed as dist
from torch import Tensor, nn
from transformer import Transformer, is_sharded, make_layout, make_tokens, predict_loss

batch = make_tokens


def step(batch: Tensor) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    layout = make_layout(tensor=dist.get_world_size())
    model = Transformer(layout.tensor, sequence=True)
    loss = predict_loss(model, batch)
    loss.backward()
    for name, parameter in model.named_parameters():
        if not is_sharded(name) and name != "embedding.weight":  # a replica that saw this rank's positions only
            assert parameter.grad is not None
            dist.all_reduce(parameter.grad, group=layout.tensor)
    return loss, model
