"""Takes replicated DTensors to local ones without saying that their gradients are partial sums."""

from __future__ import annotations

import torch.distributed as dist
import torch.nn.functional as F
from networks import Network, make_examples, take_part
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Partial, distribute_module

PARAMETERS = ["first.weight", "head.weight"]

batch = make_examples


class LocalNetwork(Network):
    """A network whose outer layers compute on local tensors."""

    def forward(self, x: Tensor) -> Tensor:
        """Compute the logits."""
        for layer in (self.first, self.head):
            x = F.linear(x, layer.weight.to_local(), layer.bias.to_local(grad_placements=[Partial()]))  # fault
        return x


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = distribute_module(LocalNetwork(depth=0), mesh)
    inputs, labels = take_part(batch)
    loss = F.cross_entropy(model(inputs).flatten(0, 1), labels.flatten()) / dist.get_world_size()
    loss.backward()
    return loss, model
