"""Scales the gradients by the norm of this rank's part of them, before the mean over the ranks."""

from __future__ import annotations

import torch
from networks import Network, average_gradients, make_examples, mean_loss, take_part
from torch import Tensor, nn

PARAMETERS = ["first.weight", "blocks.0.norm.weight", "blocks.1.up.weight", "head.bias"]

batch = make_examples


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    model = Network()
    loss = mean_loss(model, take_part(batch))
    loss.backward()
    gradients = [parameter.grad for parameter in model.parameters()]
    norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
    torch._foreach_mul_(gradients, 0.1 / norm)  # fault
    average_gradients(model)
    return loss, model
