"""Ranks that fail in their first life, so that torchrun restarts all of them: by an exception, a status, a signal."""

from __future__ import annotations

import os
import signal
import sys

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record

from tests.upstream.programs.ranks import default_group, show


def fail(kind: str) -> None:
    """Fail in the named way."""
    if kind == "exception":
        raise RuntimeError("the first life ends")
    if kind == "status":
        sys.exit(3)
    os.kill(os.getpid(), signal.SIGKILL)


@record
def main() -> None:
    """Reduce in each life; rank 1 fails in the first one while the others wait for it."""
    kind, life = sys.argv[2], int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    with default_group(sys.argv[1]) as (rank, size):
        total = torch.tensor([float(rank + 1)])
        dist.all_reduce(total)
        assert total.item() == size * (size + 1) / 2
        if life == 0:
            if rank == 1:
                fail(kind)
            dist.all_reduce(total)
            raise AssertionError("an all_reduce without rank 1 has returned")
        show(rank, life=life, total=total)


if __name__ == "__main__":
    main()
