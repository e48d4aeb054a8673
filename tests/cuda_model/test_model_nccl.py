"""The simulated NCCL itself: after an abort by one rank no other kernel ends, as on GPUs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import torch
import torch.distributed
from torch.distributed import AllreduceOptions, HashStore

from tests.cuda_model.hardware import require_model
from tests.cuda_model.ranks import ones

require_model()

LIMIT = 20.0
A_WHILE = 0.5
"""Seconds in which the device can do everything that is possible."""


def reduced(group: Any) -> Any:
    return group.allreduce([ones()], AllreduceOptions())


def sent(group: Any) -> Any:
    return group.send([ones()], 1 - group.rank(), 0)


def received(group: Any) -> Any:
    return group.recv([ones()], 1 - group.rank(), 0)


def on_two(body: Callable[[Any], None]) -> None:
    """Run ``body`` on two ranks with connected communicators, of both and of the pair."""
    store, raised = HashStore(), list[BaseException]()
    make: Any = torch.distributed.ProcessGroupNCCL  # torch's stubs lack its methods; builds for the CPU lack the class

    def run(rank: int) -> None:
        try:
            torch.cuda.set_device(rank)
            group = make(store, rank, 2, timedelta(seconds=10 * LIMIT))
            for start in (reduced, sent if rank == 0 else received):
                start(group).wait()
            torch.cuda.synchronize()
            body(group)
            group.abort()
            torch.cuda.synchronize()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert not raised
    assert not any(thread.is_alive() for thread in threads)


CALLS = {"all_reduce": (reduced, reduced), "send": (sent, received), "recv": (received, sent)}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("is_late", [False, True], ids=["both there", "one late"])
def test_abort_leaves_the_peer_waiting(name: str, is_late: bool) -> None:
    first_has_gone, second_is_there = threading.Event(), threading.Event()

    def body(group: Any) -> None:
        start = CALLS[name][group.rank()]
        if group.rank() == 0:
            if not is_late:
                second_is_there.wait(LIMIT)
            else:
                start(group)
            group.abort()
            torch.cuda.synchronize()
            first_has_gone.set()
            return
        work = None if is_late else start(group)
        second_is_there.set()
        first_has_gone.wait(LIMIT)
        work = work or start(group)
        time.sleep(A_WHILE)
        assert not work.is_completed()

    on_two(body)
