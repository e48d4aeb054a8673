"""DataLoaders with workers that are forked or spawned after the default group was made."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from tests.upstream.programs.ranks import run, show


class Squares(Dataset[Tensor]):
    """The squares of the numbers below 24."""

    def __len__(self) -> int:
        return 24

    def __getitem__(self, index: int) -> Tensor:
        return torch.tensor(float(index * index))


def main(rank: int, size: int, *starts: str) -> None:
    """Reduce the sums of the batches between the reads."""
    for start in starts:
        data = Squares()
        sampler: DistributedSampler[Tensor] = DistributedSampler(data, shuffle=True, seed=5)
        loader = DataLoader(
            data, 3, sampler=sampler, num_workers=2, multiprocessing_context=start, persistent_workers=True
        )
        sums, own = [], 0.0
        for epoch in range(2):
            sampler.set_epoch(epoch)
            total = torch.zeros(())
            for part in loader:
                batch = part.sum()
                own += batch.item()
                dist.all_reduce(batch)
                total += batch
            assert total.item() == sum(index * index for index in range(24))
            sums.append(total.item())
        show(rank, start=start, sums=sums, own=own)
        del loader


if __name__ == "__main__":
    run(main)
