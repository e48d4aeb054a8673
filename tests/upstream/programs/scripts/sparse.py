"""DistributedDataParallel with sparse gradients of an embedding."""

from __future__ import annotations

import torch
from torch import nn

from tests.upstream.programs.ranks import run, show, weights


def trained(model: nn.Module, embedding: nn.Embedding, rows: list[torch.Tensor]) -> None:
    """Take a step for each rank's rows."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for indices in rows:
        optimizer.zero_grad()
        model(indices).square().mean().backward()
        assert embedding.weight.grad is not None
        assert embedding.weight.grad.is_sparse
        optimizer.step()


def made() -> nn.Sequential:
    """Return an embedding and a linear layer, the same on every rank."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Embedding(10, 4, sparse=True), nn.Linear(4, 2))


def main(rank: int, size: int) -> None:
    """Train with other rows on each rank, and compare with all rows in one process."""
    inner, alone = made(), made()
    all_rows = [[torch.tensor([r, (2 * r + step) % 10]) for r in range(size)] for step in range(3)]
    model = nn.parallel.DistributedDataParallel(inner)
    trained(model, inner[0], [rows[rank] for rows in all_rows])  # type: ignore[arg-type]
    trained(alone, alone[0], [torch.cat(rows) for rows in all_rows])  # type: ignore[arg-type]
    for own, wanted in zip(inner.parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(own, wanted)
    show(rank, weights=weights(model))


if __name__ == "__main__":
    run(main)
