"""Averages the gradients of the discriminator where those of the generator are meant."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from networks import CLASSES, FEATURES, Network, average_gradients, make_examples, take_part
from torch import Tensor, nn

PARAMETERS = ["generator.first.weight", "generator.head.bias"]

batch = make_examples


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, dict[str, nn.Module]]:
    """Take one step of each."""
    generator, discriminator = Network(seed=1), Network(seed=2)
    optimizers = [torch.optim.SGD(model.parameters(), 0.1) for model in (generator, discriminator)]
    inputs, _ = take_part(batch)
    made = F.pad(generator(inputs), (0, FEATURES - CLASSES))
    (F.softplus(-discriminator(inputs)).mean() + F.softplus(discriminator(made.detach())).mean()).backward()
    average_gradients(discriminator)
    optimizers[1].step()
    optimizers[1].zero_grad()
    loss = F.softplus(-discriminator(made)).mean()
    loss.backward()
    average_gradients(discriminator)  # fault
    optimizers[0].step()
    return loss, {"generator": generator, "discriminator": discriminator}
