"""Ranks that are threads of this process, each on a simulated GPU of its own, and use NCCL as processes do.

Not modelled: a process for each rank, so neither fork nor exit nor launcher.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Callable
from itertools import count
from typing import Any, NamedTuple

import torch
from torch.distributed import HashStore

import collshim
from collshim.calls.site import how_it_failed
from collshim.transports.processes.process_groups import ProcessGroups
from collshim.transports.processes.transport import ProcessTransport
from collshim.transports.rendezvous.world import ProcessWorld
from collshim.world import World, use
from tests.engine.worlds import Outcome, attempt

WAIT = 20.0
"""The limit in seconds of a wait, unless a test sets another."""

LIMIT = 60.0
"""The limit in seconds of a whole scenario."""

_numbers = count()


class Setting(NamedTuple):
    """How the ranks' world is made.

    Attributes:
        checks: whether the ranks compare their calls.
        wait: seconds that the ranks wait for each other.
        closes: whether a rank that is done closes its world.
        rests: whether it waits for its GPU first.
        one_gpu: whether all ranks are on GPU 0.
    """

    checks: bool | None = False
    wait: float = WAIT
    closes: bool = True
    rests: bool = True
    one_gpu: bool = False


DEADLINE, SLACK = 3.0, 2.0
"""The limit in seconds of a wait for missing ranks, and how much later the error may come."""

SHORT = Setting(wait=DEADLINE, rests=False)


PLAIN = Setting()


def among_gpus(
    scenario: Callable[..., Any], size: int, *args: Any, setting: Setting = PLAIN, limit: float = LIMIT
) -> list[Outcome]:
    """Return the outcome of ``scenario(communicator, *args)`` on each rank; fail if one does not end."""
    store, name, found = HashStore(), f"gpus{next(_numbers)}", dict[int, Outcome]()

    def run(rank: int) -> None:
        found[rank] = attempt(lambda: _on_rank(scenario, rank, size, args, setting, (store, name)))

    threads = [threading.Thread(target=run, args=(rank,), name=f"rank {rank}", daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + limit
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    late = [thread for thread in threads if thread.is_alive()]
    ended = [f"rank {rank} came to {outcome}" for rank, outcome in found.items()]
    assert not late, "\n".join([*map(_where, late), *ended])
    return [found[rank] for rank in range(size)]


def values(outcomes: list[Outcome]) -> list[Any]:
    """Return every rank's result; none may have raised."""
    failed = [f"rank {rank}: {told.raised[0]}: {told.text}" for rank, told in enumerate(outcomes) if told.raised]
    assert not failed, "\n".join(failed)
    return [outcome.value for outcome in outcomes]


def among_threads(scenario: Callable[..., Any], size: int, *args: Any) -> list[Any]:
    """Run the same without GPUs: between threads, which read each other's memory."""
    return list(collshim.launch(lambda: scenario(collshim.current().communicator, *args), size, timeout=LIMIT))


def device() -> torch.device:
    """Return this rank's GPU."""
    return torch.device("cuda", torch.cuda.current_device())


def ones() -> torch.Tensor:
    """Return four ones on this rank's GPU."""
    return torch.ones(4, device=device())


def _on_rank(
    scenario: Callable[..., Any], rank: int, size: int, args: Any, setting: Setting, meeting: tuple[Any, str]
) -> Any:
    torch.cuda.set_device(0 if setting.one_gpu else rank)
    shared = ProcessWorld(meeting[0], rank, setting.wait, name=meeting[1])
    transport = ProcessTransport(ProcessGroups(shared), range(size), "all", checks=setting.checks)
    shared.meet(size)
    world = World(transport, rank, size, range(size))
    world.communicator.timeout = setting.wait
    why = "has left the world"
    with use(world):
        try:
            found = scenario(world.communicator, *args)
            if setting.rests:
                torch.cuda.synchronize()
        except Exception as error:
            why = how_it_failed(error)
            raise
        finally:
            world.communicator.announce_leaving(why)
            if setting.closes:
                shared.close()
    return found


def _where(thread: threading.Thread) -> str:
    frame = sys._current_frames().get(thread.ident or 0)
    return f"{thread.name} hangs at\n{''.join(traceback.format_stack(frame)[-6:])}"
