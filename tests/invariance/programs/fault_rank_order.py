"""Takes the parts of a gradient in the reverse order of the ranks that gathered the activation."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from mappings import SEQUENCE, GatherToRegion, reduce_scatter
from torch import Tensor, nn
from transformer import Mlp, Transformer, is_sharded, make_layout, make_tokens, predict_loss

PARAMETERS = ["embedding.weight", "layers.0.mlp.up.weight", "layers.1.norm2.weight"]

batch = make_tokens


class ReversedGather(GatherToRegion):
    """Gather the positions, and scatter their gradients the wrong way round."""

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        """Add up what each shard says of this rank's positions."""
        parts = gradient.chunk(dist.get_world_size(ctx.group), SEQUENCE)[::-1]  # fault
        return reduce_scatter(torch.cat(parts, SEQUENCE), SEQUENCE, ctx.group), None


class ReversedMlp(Mlp):
    """A feed-forward part with another mapping into the sharded region."""

    def enter(self, x: Tensor) -> Tensor:
        """Give every rank all positions."""
        return ReversedGather.apply(x, self.group)


def step(batch: Tensor) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    layout = make_layout(tensor=dist.get_world_size())
    model = Transformer(layout.tensor, sequence=True, mlp=ReversedMlp)
    loss = predict_loss(model, batch)
    loss.backward()
    for name, parameter in model.named_parameters():
        if not is_sharded(name) and name != "embedding.weight":
            dist.all_reduce(parameter.grad, group=layout.tensor)
    return loss, model
