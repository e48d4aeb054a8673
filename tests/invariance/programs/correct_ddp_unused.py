"""DistributedDataParallel of a model with a head that goes unused."""

from __future__ import annotations

from networks import CLASSES, HIDDEN, Network, make_examples, mean_loss, take_part
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

batch = make_examples


class TwoHeads(Network):
    """A network with a second head, which training doesn't reach."""

    def __init__(self) -> None:
        super().__init__()
        self.spare = nn.Linear(HIDDEN, CLASSES)


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    model = DistributedDataParallel(TwoHeads(), find_unused_parameters=True)
    loss = mean_loss(model, take_part(batch))
    loss.backward()
    return loss, model.module
