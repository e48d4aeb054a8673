"""sentence-transformers: losses that gather the embeddings of all ranks; their gradients are those of one rank."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor, nn

from tests.upstream.programs import vision  # noqa: F401
from tests.upstream.programs.ranks import run_named

ROWS = 4


class _Model(nn.Module):
    similarity_fn_name = "cosine"
    device = torch.device("cpu")

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(6, 4)

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"sentence_embedding": self.layer(features["inputs"])}


def loss_of(kind: Callable[..., nn.Module], anchors: Tensor, others: Tensor, *, gathers: bool) -> tuple[Tensor, Tensor]:
    """Return a loss, and the gradient of the model's weight."""
    model = _Model()
    loss = kind(model, gather_across_devices=gathers)
    value = loss([{"inputs": anchors}, {"inputs": others}], torch.zeros(len(anchors)))
    value.backward()
    assert model.layer.weight.grad is not None
    return value.detach(), model.layer.weight.grad


def use(kind: Callable[..., nn.Module], rank: int, size: int) -> object:
    """Compare the means of the ranks' losses and gradients with those of the whole batch."""
    generator = torch.Generator().manual_seed(1)
    anchors, others = torch.randn(2, ROWS * size, 6, generator=generator)
    own = slice(rank * ROWS, (rank + 1) * ROWS)
    means = loss_of(kind, anchors[own], others[own], gathers=True)
    for mean, whole in zip(means, loss_of(kind, anchors, others, gathers=False), strict=True):
        dist.all_reduce(mean)
        torch.testing.assert_close(mean / size, whole)
    return [means[0] / size, means[1].square().sum()]


def ranking(rank: int, size: int) -> object:
    """Take the loss that ranks each anchor's own sentence among all."""
    from sentence_transformers.losses import MultipleNegativesRankingLoss

    return use(MultipleNegativesRankingLoss, rank, size)


def symmetric(rank: int, size: int) -> object:
    """Take the loss that also ranks each sentence's own anchor."""
    from sentence_transformers.losses import MultipleNegativesSymmetricRankingLoss

    return use(MultipleNegativesSymmetricRankingLoss, rank, size)


USES: dict[str, Callable[[int, int], object]] = {"ranking": ranking, "symmetric": symmetric}

if __name__ == "__main__":
    run_named(USES)
