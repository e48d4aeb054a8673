"""Uses a replicated activation in a column-parallel layer without summing its gradient over the shards."""

from __future__ import annotations

import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from transformer import Mlp, Transformer, make_layout, make_tokens, predict_loss

PARAMETERS = ["embedding.weight", "layers.0.norm1.weight", "layers.1.norm2.weight", "layers.0.mlp.up.weight"]

batch = make_tokens


class BareMlp(Mlp):
    """A feed-forward part without the mapping into the sharded region."""

    def forward(self, x: Tensor) -> Tensor:
        """Compute with this rank's hidden units."""
        return self.down(F.gelu(self.up(x)))  # fault


def step(batch: Tensor) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    layout = make_layout(tensor=dist.get_world_size())
    model = Transformer(layout.tensor, mlp=BareMlp)
    loss = predict_loss(model, batch)
    loss.backward()
    return loss, model
