"""Clips this rank's part of the gradients, before the mean over the ranks."""

from __future__ import annotations

from networks import Network, average_gradients, make_examples, mean_loss, take_part
from torch import Tensor, nn

PARAMETERS = ["first.weight", "blocks.0.norm.weight", "blocks.1.up.weight", "head.bias"]

batch = make_examples


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    model = Network()
    loss = mean_loss(model, take_part(batch))
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.1)  # fault
    average_gradients(model)
    return loss, model
