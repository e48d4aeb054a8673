"""A transformer in tensor parallel, with dropout, its gradients clipped by their global norm."""

from __future__ import annotations

import torch.distributed as dist
from torch import Tensor, nn
from transformer import Transformer, clip_gradients, make_layout, make_tokens, predict_loss

batch = make_tokens


def step(batch: Tensor) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    layout = make_layout(tensor=dist.get_world_size())
    model = Transformer(layout.tensor, dropout=0.1)
    loss = predict_loss(model, batch)
    loss.backward()
    clip_gradients(model, layout.tensor, 0.5)
    return loss, model
