"""``oneflow.utils.data``: torch's, with loaders that return OneFlow's tensors; DistributedSampler uses ``flow.env``."""

from __future__ import annotations

from typing import Any

from torch.utils import data

from collshim.adapting import fall_through
from collshim.oneflow.framework.tensor import adopt
from collshim.oneflow.utils.data import distributed as distributed
from collshim.oneflow.utils.data.distributed import DistributedSampler as DistributedSampler


class DataLoader(data.DataLoader[Any]):
    """torch's DataLoader with batches of OneFlow's tensors."""

    def __iter__(self) -> Any:
        """Return an iterator over the batches."""
        return map(adopt, super().__iter__())


__getattr__ = fall_through.names(__name__, [data])
