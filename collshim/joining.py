"""Join the world that the launcher, or ``init``, describes."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from typing import Any, Literal

from collshim.calls.site import how_it_failed
from collshim.environment import LaunchedRank
from collshim.errors import WorldError
from collshim.log import LOG, show_as_asked
from collshim.logs.files import rank_file, rank_log
from collshim.settings import get as current_options
from collshim.transports.processes.nccl.group import nccl_is_there
from collshim.transports.processes.process_groups import ProcessGroups
from collshim.transports.processes.transport import ProcessTransport
from collshim.transports.rendezvous.serving import reach_store
from collshim.transports.rendezvous.world import ProcessWorld

_GENERATIONS = itertools.count()
"""Counts this process's worlds."""


def join(
    launched: LaunchedRank, store: Any, seconds: float, secret: str | None, begun: Callable[[ProcessWorld | None], None]
) -> tuple[ProcessTransport, ProcessWorld]:
    """Return the transport of all ranks, and the state that its groups share; see ``world.init`` for the arguments.

    ``begun`` is called with the state that must be ended if the process ends while it joins, and with None if no world
    could be made.
    """
    show_as_asked()
    file = rank_file(launched.rank)
    LOG.info("rank %d of %d joins %s:%d, deadline %g s", *launched[:4], seconds)
    server = "another process"
    if store is None:
        server = "the launcher's agent" if launched.agent_store else "rank 0" if launched.rank else ""
        store = reach_store(launched.address, launched.port, serves=not server, timeout=seconds, server=server)
    key = (os.environ.get("COLLSHIM_SECRET", "") if secret is None else secret).encode()
    shared = ProcessWorld(store, launched.rank, seconds, launched.address, server=server, name=_name(), secret=key)
    begun(shared)
    try:
        run = shared.enrol(launched.size)
        shared.pending.log = rank_log(file, run, launched.rank, launched.size)
        transport = ProcessTransport(ProcessGroups(shared), range(launched.size), "all", checks=_checks(shared))
        shared.meet(launched.size)
        with shared.blame_server(range(launched.size)):
            shared.refuse()
    except BaseException as error:
        begun(None)
        shared.withdraw(how_it_failed(error))
        raise
    return transport, shared


def _name() -> str:
    """Return the world's name, distinct from this process's earlier worlds and from those before an agent's restart."""
    restarts = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    return f"world{next(_GENERATIONS)}" + (f".{restarts}" if restarts != "0" else "")


def _checks(shared: ProcessWorld) -> bool | Literal["sites"] | None:
    """Return rank 0's check, since some ranks might lack NCCL. None: compare all calls except those on CUDA tensors."""
    chosen = current_options().check
    own = chosen if chosen is not None or nccl_is_there() else True
    words: dict[str, bool | Literal["sites"] | None] = {"True": True, "False": False, "None": None, "sites": "sites"}
    agreed = words[shared.agreed("check", str(own))]
    if chosen is not None and chosen != agreed:
        rank = shared.rank
        raise WorldError(f"the check between ranks is {chosen} on rank {rank}, {agreed} on rank 0, should be the same")
    return agreed
