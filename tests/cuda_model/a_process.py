"""A process that is rank 0 of two; rank 1, a thread of it, makes one call and leaves. An argument selects the program.

python -m tests.cuda_model.a_process NAME
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

import torch
from torch.distributed import HashStore

import collshim
from collshim import world
from collshim.torch.distributed.c10d.backend import NAME
from collshim.transports.processes.process_groups import ProcessGroups
from collshim.transports.processes.transport import ProcessTransport
from collshim.transports.rendezvous.world import ProcessWorld
from tests.cuda_model import kernels, model
from tests.cuda_model.ranks import ones

SECONDS = 20.0


def leaving(store: HashStore) -> None:
    """Make one call as rank 1."""
    torch.cuda.set_device(1)
    shared = ProcessWorld(store, 1, SECONDS, name="world0")
    transport = ProcessTransport(ProcessGroups(shared), (0, 1), "all", checks=None)
    shared.meet(2)
    comm = world.World(transport, 1, 2, (0, 1)).communicator
    comm.all_reduce(ones()).wait()
    torch.cuda.synchronize()
    if sys.argv[1] != "standing":
        comm.announce_leaving("has left the world")


def reading() -> None:
    """Use a number that no other rank was added to."""
    print(collshim.current().communicator.all_reduce(ones()).wait().sum().item())


def posting() -> None:
    """Ignore the last result."""
    collshim.current().communicator.all_reduce(ones())


def asking() -> None:
    """Ask whether the call succeeded."""
    work = collshim.current().communicator.all_reduce(ones())
    work.wait().cpu()
    print(work.exception())


def over_torch() -> None:
    """Use torch.distributed."""
    torch.distributed.init_process_group(NAME, store=HashStore(), rank=0, world_size=2)
    total = ones()
    torch.distributed.all_reduce(total)
    print(total.sum().item())


def failing() -> None:
    """End by another error."""
    reading()
    raise ValueError("not of a rank")


def standing() -> None:
    """Wait for rank 1, which does not come, until Ctrl-C is pressed."""
    threading.Timer(1.0, os.kill, [os.getpid(), signal.SIGINT]).start()
    began = time.monotonic()
    try:
        collshim.current().communicator.all_reduce(ones()).wait()
    except KeyboardInterrupt:
        print("interrupted", time.monotonic() - began < SECONDS / 2, flush=True)
    os._exit(0)


DEEDS: dict[str, Callable[[], None]] = {
    deed.__name__: deed for deed in (reading, posting, asking, over_torch, failing, standing)
}


def main() -> None:
    """Make the world, do one call with rank 1, and run the selected program without it."""
    model.set_always("devices", 2)
    kernels.install()
    atexit.register(model.stop)
    store = HashStore()
    other = threading.Thread(target=leaving, args=(store,), daemon=True)
    other.start()
    torch.cuda.set_device(0)
    collshim.init(0, 2, store=store, timeout=SECONDS).communicator.all_reduce(ones()).wait()
    torch.cuda.synchronize()
    other.join()
    DEEDS[sys.argv[1]]()


if __name__ == "__main__":
    main()
