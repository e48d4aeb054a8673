"""Adds the bias of a row-parallel layer on every rank before the partial results are summed."""

from __future__ import annotations

import torch.distributed as dist
import torch.nn.functional as F
from mappings import ReduceFromRegion
from torch import Tensor, nn
from transformer import Mlp, Transformer, make_layout, make_tokens, predict_loss

PARAMETERS = ["layers.0.mlp.down.bias", "layers.1.mlp.down.bias", "layers.1.mlp.down.weight", "norm.weight"]

batch = make_tokens


class BiasedMlp(Mlp):
    """A feed-forward part that sums its outputs with their bias."""

    def forward(self, x: Tensor) -> Tensor:
        """Compute with this rank's hidden units."""
        hidden = F.gelu(self.up(self.enter(x)))
        partial = F.linear(hidden, self.down.weight, self.down.bias)  # fault
        return ReduceFromRegion.apply(partial, self.group)


def step(batch: Tensor) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    layout = make_layout(tensor=dist.get_world_size())
    model = Transformer(layout.tensor, mlp=BiasedMlp)
    loss = predict_loss(model, batch)
    loss.backward()
    return loss, model
