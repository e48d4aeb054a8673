"""A backend of torch.distributed, named mine, over gloo's own ProcessGroup: an example for ``--backend``."""

from __future__ import annotations

from datetime import timedelta

from torch.distributed import Backend, ProcessGroupGloo, Store


def _make(store: Store, rank: int, size: int, timeout: timedelta) -> ProcessGroupGloo:
    return ProcessGroupGloo(store, rank, size, timeout)


Backend.register_backend("mine", _make, devices=["cpu"])
