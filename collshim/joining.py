"""How a process joins the world of processes that its launcher, or ``init``, describes."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from typing import Any, Literal

from collshim.calls.site import how_it_failed
from collshim.environment import LaunchedRank
from collshim.errors import WorldError
from collshim.log import LOG, show_as_asked
from collshim.settings import get as current_options
from collshim.transports.processes.nccl.group import nccl_is_there
from collshim.transports.processes.process_groups import ProcessGroups
from collshim.transports.processes.transport import ProcessTransport
from collshim.transports.rendezvous.serving import reach_store
from collshim.transports.rendezvous.world import ProcessWorld

_GENERATIONS = itertools.count()
"""Of this process's worlds."""


def join(
    place: LaunchedRank, store: Any, seconds: float, secret: str | None, begun: Callable[[ProcessWorld | None], None]
) -> tuple[ProcessTransport, ProcessWorld]:
    """The transport of all ranks, and what its groups share; see ``world.init`` for the arguments.

    ``begun`` gets what there is to end if the process ends meanwhile, and None if the world could not be made.
    """
    show_as_asked()
    LOG.info("rank %d of %d joins %s:%d, deadline %g s", place.rank, place.size, place.address, place.port, seconds)
    server = "another process"
    if store is None:
        server = "the launcher's agent" if place.agent_store else "rank 0" if place.rank else ""
        store = reach_store(place.address, place.port, serves=not server, timeout=seconds, server=server)
    key = (os.environ.get("COLLSHIM_SECRET", "") if secret is None else secret).encode()
    shared = ProcessWorld(store, place.rank, seconds, place.address, server=server, name=_name(), secret=key)
    begun(shared)
    try:
        shared.enrol(place.size)
        transport = ProcessTransport(ProcessGroups(shared), range(place.size), "all", checks=_checks(shared))
        shared.meet(place.size)
        shared.refuse()
    except BaseException as error:
        begun(None)
        shared.withdraw(how_it_failed(error))
        raise
    return transport, shared


def _name() -> str:
    """The world's: apart from those that the process had before, and from those of ranks that an agent restarted."""
    restarts = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    return f"world{next(_GENERATIONS)}" + (f".{restarts}" if restarts != "0" else "")


def _checks(shared: ProcessWorld) -> bool | Literal["sites"] | None:
    """Rank 0 decides for all: whether NCCL is there may differ between them. None: all but calls on CUDA tensors."""
    chosen = current_options().check
    own = chosen if chosen is not None or nccl_is_there() else True
    words: dict[str, bool | Literal["sites"] | None] = {"True": True, "False": False, "None": None, "sites": "sites"}
    agreed = words[shared.agreed("check", str(own))]
    if chosen is not None and chosen != agreed:
        rank = shared.rank
        raise WorldError(f"the check between ranks is {chosen} on rank {rank}, {agreed} on rank 0, should be the same")
    return agreed
