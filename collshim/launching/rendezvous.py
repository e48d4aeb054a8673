"""The rendezvous of ``collshim run`` on one machine; torch's own would serve its stores on all interfaces."""

from __future__ import annotations

from torch.distributed.elastic.rendezvous import (
    RendezvousHandler,
    RendezvousInfo,
    RendezvousParameters,
    RendezvousStoreInfo,
    rendezvous_handler_registry,
)

from collshim.transports.rendezvous.serving import reach_store
from collshim.transports.sockets.addresses import LOOPBACK

BACKEND = "collshim"
"""The rendezvous's name in torch's elastic agent."""


class _OneMachine(RendezvousHandler):
    """The rendezvous of a single agent. Its store listens only on loopback, and serves the ranks as well.

    Args:
        name: the run's name.
        port: the store's port; 0 for a free one.
    """

    def __init__(self, name: str, port: int) -> None:
        self._name = name
        self._store = reach_store(LOOPBACK, port, serves=True)
        self._is_closed = False

    @property
    def use_agent_store(self) -> bool:
        return True

    def get_backend(self) -> str:
        return BACKEND

    def get_run_id(self) -> str:
        return self._name

    def next_rendezvous(self) -> RendezvousInfo:
        return RendezvousInfo(self._store, 0, 1, RendezvousStoreInfo(LOOPBACK, self._store.port))

    def num_nodes_waiting(self) -> int:
        return 0

    def is_closed(self) -> bool:
        return self._is_closed

    def set_closed(self) -> None:
        self._is_closed = True

    def shutdown(self) -> bool:
        self._is_closed = True
        return True


def register() -> None:
    """Register the rendezvous with torch's agent, as ``BACKEND``."""
    rendezvous_handler_registry.register(BACKEND, _make)


def _make(parameters: RendezvousParameters) -> RendezvousHandler:
    port = parameters.endpoint.rpartition(":")[2]
    return _OneMachine(parameters.run_id, int(port))
