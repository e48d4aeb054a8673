"""Adds noise to a replicated activation, which each tensor-parallel rank draws from a seed of its own."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor, nn
from transformer import Mlp, Transformer, make_layout, make_tokens, predict_loss

PARAMETERS = [
    "embedding.weight",
    "layers.0.attention.query.weight",
    "layers.0.mlp.up.weight",
    "layers.1.mlp.down.weight",
    "norm.weight",
]

batch = make_tokens


class NoisyMlp(Mlp):
    """A feed-forward part with noise on its input."""

    def forward(self, x: Tensor) -> Tensor:
        """Compute with this rank's hidden units."""
        generator = torch.Generator().manual_seed(dist.get_rank(self.group))
        return super().forward(x + 0.1 * torch.randn(x.shape, generator=generator))  # fault


def step(batch: Tensor) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    layout = make_layout(tensor=dist.get_world_size())
    model = Transformer(layout.tensor, mlp=NoisyMlp)
    loss = predict_loss(model, batch)
    loss.backward()
    return loss, model
