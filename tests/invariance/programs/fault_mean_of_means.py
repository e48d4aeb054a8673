"""Averages over the ranks a loss that is a mean over unequal numbers of targets."""

from __future__ import annotations

import torch.nn.functional as F
from mappings import shard
from torch import Tensor, nn
from transformer import SEQUENCES, Transformer, average_gradients, make_layout, make_tokens

PARAMETERS = [
    "embedding.weight",
    "layers.0.attention.query.weight",
    "layers.0.mlp.up.weight",
    "layers.1.mlp.down.weight",
    "norm.weight",
]

PADDING = -1


def batch() -> dict[str, Tensor]:
    """Draw the global batch, whose sequences become shorter and shorter."""
    tokens = make_tokens()
    targets = tokens[:, 1:].clone()
    for row, length in enumerate(range(SEQUENCES, 0, -1)):
        targets[row, length:] = PADDING
    return {"tokens": tokens[:, :-1], "targets": targets}


def step(batch: dict[str, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    layout = make_layout(tensor=1)
    model = Transformer(layout.tensor)
    logits = model(shard(batch["tokens"], 0, layout.data))
    targets = shard(batch["targets"], 0, layout.data)
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=PADDING)  # fault
    loss.backward()
    average_gradients(model, layout.data)
    return loss, model
