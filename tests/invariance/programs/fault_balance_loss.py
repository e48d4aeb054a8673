"""Computes the loss that balances experts, a product of means, on each rank's tokens alone."""

from __future__ import annotations

from networks import HIDDEN, Network, average_gradients, initialise, make_examples, mean_loss, take_part
from torch import Tensor, nn

PARAMETERS = ["gate.weight", "first.weight"]

batch = make_examples


class GatedNetwork(Network):
    """A network with a gate that chooses among four experts."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(HIDDEN, 4)
        initialise(self)

    def balance(self, x: Tensor) -> Tensor:
        """Compute how far the gate is from choosing all experts alike."""
        weights = self.gate(self.first(x)).softmax(-1).flatten(0, 1)
        chosen = nn.functional.one_hot(weights.argmax(-1), 4).float()
        return 4 * (weights.mean(0) * chosen.mean(0)).sum()  # fault


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    model = GatedNetwork()
    part = take_part(batch)
    loss = mean_loss(model, part) + model.balance(part[0])
    loss.backward()
    average_gradients(model)
    return loss, model
