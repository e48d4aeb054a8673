"""torcheval: metrics whose states are lists of unequal lengths, empty, or numbers, synchronized with objects."""

from __future__ import annotations

import torch

from tests.upstream.programs import vision  # noqa: F401
from tests.upstream.programs.ranks import run, show

from torcheval import metrics  # isort: skip
from torcheval.metrics import toolkit  # isort: skip


def main(rank: int, size: int) -> None:
    """Update each metric with this rank's part, and compare with one process that has all parts."""
    generator = torch.Generator().manual_seed(0)
    rows = [5 + 3 * other for other in range(size)]
    scores = [torch.rand(count, generator=generator) for count in rows]
    targets = [torch.randint(0, 2, (count,), generator=generator) for count in rows]
    found = {}
    for make in (metrics.BinaryAUROC, metrics.BinaryAccuracy, metrics.BinaryF1Score, metrics.MeanSquaredError):
        own, alone = make(), make()
        own.update(scores[rank], targets[rank])
        alone.update(torch.cat(scores), torch.cat(targets))
        value = toolkit.sync_and_compute(own)
        torch.testing.assert_close(value, alone.compute())
        found[make.__name__] = value
    show(rank, found=found, **others(rank))


def others(rank: int) -> dict[str, object]:
    """Synchronize a list that is empty on rank 0, and several metrics together."""
    listed, mean, most = metrics.Cat(), metrics.Mean(), metrics.Max()
    if rank:
        listed.update(torch.arange(float(rank)))
    mean.update(torch.tensor(float(rank)), weight=rank + 1.0)
    most.update(torch.tensor(float(rank)))
    together = toolkit.sync_and_compute_collection({"mean": mean, "max": most})
    states = toolkit.get_synced_state_dict(mean)
    return {"listed": toolkit.sync_and_compute(listed), "together": together, "states": states}


if __name__ == "__main__":
    run(main)
