"""The training in one process, without communication."""

from __future__ import annotations

from torch.nn.functional import cross_entropy

from collshim.demo.training.digits import Digits
from collshim.demo.training.model import descend, flat_gradient, make_model


def train(digits: Digits) -> list[float]:
    """Train, and return the loss of every step."""
    model, losses = make_model(), list[float]()
    for images, labels in digits.batches():
        loss = cross_entropy(model(images), labels)
        descend(model, flat_gradient(loss, model))
        losses.append(loss.item())
    return losses
