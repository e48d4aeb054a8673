"""Sums the gradients of biases over the sequence-parallel ranks, but not those of the norms."""

from __future__ import annotations

import torch.distributed as dist
from torch import Tensor, nn
from transformer import Transformer, make_layout, make_tokens, predict_loss

PARAMETERS = [
    "layers.0.norm1.weight",
    "layers.0.norm2.weight",
    "layers.1.norm1.weight",
    "layers.1.norm2.weight",
    "norm.weight",
]

batch = make_tokens


def step(batch: Tensor) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    layout = make_layout(tensor=dist.get_world_size())
    model = Transformer(layout.tensor, sequence=True)
    loss = predict_loss(model, batch)
    loss.backward()
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            dist.all_reduce(parameter.grad, group=layout.tensor)  # fault
    return loss, model
