"""Adds the weight decay to each rank's gradient before their mean, which has it once."""

from __future__ import annotations

from networks import Network, average_gradients, make_examples, mean_loss, take_part
from torch import Tensor, nn

batch = make_examples


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    model = Network()
    loss = mean_loss(model, take_part(batch))
    loss.backward()
    for parameter in model.parameters():
        parameter.grad.add_(parameter.detach(), alpha=0.1)
    average_gradients(model)
    return loss, model
