"""``oneflow.utils.data.distributed.DistributedSampler``."""

from __future__ import annotations

from typing import Any

from torch.utils.data import distributed

from collshim.oneflow.env import get_rank, get_world_size


class DistributedSampler(distributed.DistributedSampler[Any]):
    """This rank's share of a dataset's indices: every ``num_replicas``-th, from ``rank`` on.

    They are shuffled alike on every rank, by ``seed`` and the epoch that ``set_epoch`` said, and filled up with the
    first ones so that all ranks have as many; with ``drop_last`` the rest is left out instead.

    Args:
        dataset: what is sampled; it has a length.
        num_replicas, rank: the world's size and this rank, where not given.
        shuffle, seed, drop_last: see above.

    Raises:
        ValueError: ``rank`` is not below ``num_replicas``.
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        replicas = get_world_size() if num_replicas is None else num_replicas
        own = get_rank() if rank is None else rank
        super().__init__(dataset, replicas, own, shuffle, seed, drop_last)


__all__ = ["DistributedSampler"]
