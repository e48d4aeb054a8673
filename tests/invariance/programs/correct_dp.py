"""A transformer in data parallel, its gradients averaged in a loop."""

from __future__ import annotations

from mappings import shard
from torch import Tensor, nn
from transformer import Transformer, average_gradients, make_layout, make_tokens, predict_loss

batch = make_tokens


def step(batch: Tensor) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    layout = make_layout(tensor=1)
    model = Transformer(layout.tensor)
    loss = predict_loss(model, shard(batch, 0, layout.data))
    loss.backward()
    average_gradients(model, layout.data)
    return loss, model
