"""A transformer in data parallel and tensor parallel, with dropout and clipping."""

from __future__ import annotations

import torch
import torch.distributed as dist
from mappings import shard
from torch import Tensor, nn
from transformer import Transformer, average_gradients, clip_gradients, make_layout, make_tokens, predict_loss

RANKS = (1, 4)
MESH = {"dp": 2, "tp": 2}

batch = make_tokens


def step(batch: Tensor) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    layout = make_layout(tensor=min(MESH["tp"], dist.get_world_size()))
    model = Transformer(layout.tensor, dropout=0.1)
    optimizer = torch.optim.AdamW(model.parameters())
    loss = predict_loss(model, shard(batch, 0, layout.data))
    loss.backward()
    average_gradients(model, layout.data)
    clip_gradients(model, layout.tensor, 0.5)
    optimizer.step()
    return loss, model
