"""torchmetrics: sums, averages, curves over gathered lists of unequal lengths, and text metrics, synchronized."""

from __future__ import annotations

import torch

from tests.upstream.programs import vision  # noqa: F401
from tests.upstream.programs.ranks import run, show

import torchmetrics  # isort: skip
from torchmetrics import classification, regression, text  # isort: skip


def main(rank: int, size: int) -> None:
    """Update each metric with this rank's part, and compare with one process that has all parts."""
    generator = torch.Generator().manual_seed(0)
    rows = [8 + 3 * other for other in range(size)]
    scores = [torch.rand(count, generator=generator) for count in rows]
    targets = [torch.randint(0, 2, (count,), generator=generator) for count in rows]
    found: dict[str, float] = {}
    for make in (
        classification.BinaryAccuracy,
        classification.BinaryAUROC,
        classification.BinaryAveragePrecision,
        classification.BinaryConfusionMatrix,
        regression.MeanSquaredError,
        regression.SpearmanCorrCoef,
        regression.PearsonCorrCoef,
    ):
        own, alone = make(), make(distributed_available_fn=lambda: False)
        as_values = make.__module__.startswith("torchmetrics.regression")
        own.update(scores[rank], targets[rank].float() if as_values else targets[rank])
        everything = torch.cat(targets)
        alone.update(torch.cat(scores), everything.float() if as_values else everything)
        torch.testing.assert_close(own.compute(), alone.compute(), atol=1e-5, rtol=1e-4)
        found[make.__name__] = float(own.compute().double().sum())
    show(rank, found=found, **others(rank, size))


def others(rank: int, size: int) -> dict[str, object]:
    """Synchronize averages, a list that is empty on rank 0, and a collection."""
    mean, collected = torchmetrics.MeanMetric(), torchmetrics.CatMetric()
    mean.update(float(rank), weight=rank + 1.0)
    if rank:
        collected.update(torch.arange(float(rank)))
    words = text.WordErrorRate()
    words.update([f"the rank {rank}"], ["the rank 0"])
    both = torchmetrics.MetricCollection({"max": torchmetrics.MaxMetric(), "sum": torchmetrics.SumMetric()})
    both.update(torch.tensor(float(rank)))
    assert both.compute()["sum"].item() == sum(range(size))
    return {
        "mean": mean.compute(),
        "collected": collected.compute(),
        "words": words.compute(),
        "both": {name: float(value) for name, value in both.compute().items()},
    }


if __name__ == "__main__":
    run(main)
