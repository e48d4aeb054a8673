"""A small training that the programs share, and the same training without ranks to compare with."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

EACH = 4
"""The rows of each rank's batch."""


def small_model() -> nn.Sequential:
    """Return the same model on every rank."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))


def whole_batch(step: int, size: int) -> tuple[Tensor, Tensor]:
    """Return the inputs and targets of all ranks."""
    generator = torch.Generator().manual_seed(step)
    rows = EACH * size
    return torch.randn(rows, 6, generator=generator), torch.randn(rows, 3, generator=generator)


def own_batch(step: int, rank: int, size: int) -> tuple[Tensor, Tensor]:
    """Return this rank's part."""
    inputs, targets = whole_batch(step, size)
    return inputs[rank * EACH : (rank + 1) * EACH], targets[rank * EACH : (rank + 1) * EACH]


def train(
    model: Callable[..., Tensor], optimizer: torch.optim.Optimizer, batches: list[tuple[Tensor, Tensor]]
) -> list[float]:
    """Take one step for each batch; return the losses."""
    losses = []
    for inputs, targets in batches:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def trained_alone(
    size: int, steps: int = 3, optimizer: Callable[..., torch.optim.Optimizer] = torch.optim.SGD, lr: float = 0.1
) -> nn.Module:
    """Return the model after steps on the batches of all ranks."""
    model = small_model()
    train(model, optimizer(model.parameters(), lr=lr), [whole_batch(step, size) for step in range(steps)])
    return model


def assert_same(model: nn.Module, other: nn.Module, tolerance: float = 1e-5) -> None:
    """Assert that the parameters of two models are close."""
    for own, wanted in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(own.detach(), wanted.detach(), atol=tolerance, rtol=tolerance)
