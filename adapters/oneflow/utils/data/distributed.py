"""``oneflow.utils.data.distributed.DistributedSampler``."""

from __future__ import annotations

from typing import Any

from torch.utils.data import distributed

from collshim.oneflow.env import get_rank, get_world_size


class DistributedSampler(distributed.DistributedSampler[Any]):
    """This rank's share of a dataset's indices: every ``num_replicas``-th index, starting with ``rank``.

    Every rank shuffles the indices in the same order, which depends on ``seed`` and the epoch of ``set_epoch``. The
    first indices are repeated at the end so that all ranks have equally many; with ``drop_last`` the remainder is
    dropped instead.

    Args:
        dataset: the dataset to sample; it must have a length.
        num_replicas: the number of shares; by default the world's size.
        rank: the share to return; by default this rank's.
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
