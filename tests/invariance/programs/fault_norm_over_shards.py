"""Normalises the hidden units of the feed-forward part by the statistics of this rank's shard of them."""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from transformer import HIDDEN, Mlp, Norm, Transformer, make_layout, make_tokens, predict_loss

PARAMETERS = [
    "layers.0.mlp.inner.weight",
    "layers.0.mlp.up.weight",
    "layers.0.mlp.down.weight",
    "layers.1.mlp.inner.weight",
]

batch = make_tokens


class NormedMlp(Mlp):
    """A feed-forward part with a norm between its two linear layers."""

    def __init__(self, group: dist.ProcessGroup, generator: torch.Generator, sequence: bool) -> None:
        super().__init__(group, generator, sequence)
        self.inner = Norm(2 * HIDDEN // dist.get_world_size(group))

    def forward(self, x: Tensor) -> Tensor:
        """Compute with this rank's hidden units."""
        hidden = F.gelu(self.up(self.enter(x)))
        return self.down(self.inner(hidden))  # fault


def step(batch: Tensor) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    layout = make_layout(tensor=dist.get_world_size())
    model = Transformer(layout.tensor, mlp=NormedMlp)
    loss = predict_loss(model, batch)
    loss.backward()
    return loss, model
