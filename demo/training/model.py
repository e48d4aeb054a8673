"""The model: two layers, and a step of plain gradient descent."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

RATE = 0.5


def make_model() -> nn.Sequential:
    """Make a model of 64 pixels to 10 digits; every call returns the same parameters."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))


def flat_gradient(loss: Tensor, model: nn.Module) -> Tensor:
    """Return the gradient by all parameters as one flat tensor."""
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    return torch.cat([gradient.reshape(-1) for gradient in gradients])


def descend(model: nn.Module, gradient: Tensor) -> None:
    """Take one step of gradient descent with a flat gradient."""
    parameters = parameters_to_vector(model.parameters()).detach()
    vector_to_parameters(parameters - RATE * gradient, model.parameters())
