"""Train two steps with vector-quantize-pytorch's VectorQuantize, whose codebook is a moving average of its inputs.

The second loss is with the codebook that the first step has updated, so its gradient shows whose samples that saw.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from vector_quantize_pytorch import VectorQuantize


class Model(nn.Module):
    """An encoder and a quantizer; every instance has the same parameters and the same codebook."""

    def __init__(self) -> None:
        """Fill the parameters and the codebook from one generator."""
        super().__init__()
        self.encoder = nn.Linear(4, 4)
        self.quantizer = VectorQuantize(dim=4, codebook_size=8, decay=0.5)
        generator = torch.Generator().manual_seed(1)
        codebook = self.quantizer._codebook
        for tensor in (*self.encoder.parameters(), codebook.embed):
            tensor.data.normal_(generator=generator)
        codebook.embed_avg.data.copy_(codebook.embed)
        codebook.cluster_size.data.fill_(4.0)

    def forward(self, samples: Tensor) -> Tensor:
        """Return the distance of the samples from their codes."""
        loss: Tensor = self.quantizer(self.encoder(samples))[2]
        return loss.sum()


def batch() -> Tensor:
    """Return 8 sequences of 6 samples."""
    return torch.randn(8, 6, 4, generator=torch.Generator().manual_seed(0))


def step(batch: Tensor) -> tuple[Tensor, nn.Module]:
    """Quantize this rank's samples twice, and take the gradient of the second loss."""
    model = DistributedDataParallel(Model())
    samples = batch.chunk(dist.get_world_size())[dist.get_rank()]
    model(samples).backward()
    model.zero_grad()
    loss = model(samples)
    loss.backward()
    return loss, model.module
