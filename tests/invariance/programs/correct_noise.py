"""A transformer in tensor parallel with noise on its activations, which all ranks draw from one seed."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor, nn
from transformer import Mlp, Transformer, make_layout, make_tokens, predict_loss

batch = make_tokens


class NoisyMlp(Mlp):
    """A feed-forward part with noise on its input."""

    def forward(self, x: Tensor) -> Tensor:
        """Compute with this rank's hidden units."""
        generator = torch.Generator().manual_seed(7)
        return super().forward(x + 0.1 * torch.randn(x.shape, generator=generator))


def step(batch: Tensor) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    layout = make_layout(tensor=dist.get_world_size())
    model = Transformer(layout.tensor, mlp=NoisyMlp)
    loss = predict_loss(model, batch)
    loss.backward()
    return loss, model
