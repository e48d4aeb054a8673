"""What a rank knows between ``init_process_group`` and its end; each rank keeps its own in its world."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property

from collshim import world
from collshim.communicator import Communicator
from collshim.errors import WorldError, also
from collshim.megengine.distributed.server import Client

_NAME = "megengine"
_WANTED = "please call init_process_group first"
_WHAT_IT_SAYS: dict[type[Exception], str] = {
    AssertionError: _WANTED,
    TypeError: f"object of type 'NoneType' has no len(): {_WANTED}",
    AttributeError: f"'NoneType' object has no attribute '_tuple_shape': {_WANTED}",
}


@dataclass
class Membership:
    """This rank's part in the process group.

    Attributes:
        world: the collshim world that was joined or started.
        joined: whether the world was there before ``init_process_group``, or came from a launcher.
        next_stream: the stream number of the next ``Group``; each new group gets one of its own.
    """

    world: world.World
    master_ip: str
    port: int
    device: int
    backend: str
    device_type: str
    joined: bool
    next_stream: int = 2
    _communicators: dict[tuple[int, ...], Communicator] = field(default_factory=dict)

    @cached_property
    def client(self) -> Client:
        """This rank's end of the key-value store at the address that its processes met at."""
        return Client(*self._met_at())

    def _met_at(self) -> tuple[str, int]:
        if not self.joined:
            return self.master_ip, self.port
        launched = {"RANK": str(self.world.rank), "WORLD_SIZE": str(self.world.size)}
        if "MASTER_PORT" in os.environ and all(os.environ.get(name) == told for name, told in launched.items()):
            return os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        raise WorldError(f"get_client: the ranks are threads, which share memory instead of a store ({self.where()})")

    def where(self) -> str:
        """``rank 1 of 4``, for error texts."""
        return f"rank {self.world.rank} of {self.world.size}"

    def communicator(self, ranks: tuple[int, ...]) -> Communicator:
        """The communicator of these global ranks in this order; groups of the same ranks share one."""
        if ranks not in self._communicators:
            self._communicators[ranks] = self._made(ranks)
        return self._communicators[ranks]

    def _made(self, ranks: tuple[int, ...]) -> Communicator:
        everybody = self.world.communicator
        made = everybody if ranks == everybody.ranks else everybody.subgroup(ranks)
        if made is None:
            raise also(WorldError, AssertionError)(f"group {list(ranks)} does not contain rank {self.world.rank}")
        return made


def membership() -> Membership | None:
    """This rank's membership; None before ``init_process_group``."""
    here = world.peek()
    return None if here is None else here.state.get(_NAME)


def join(member: Membership) -> None:
    """Make this rank a member."""
    member.world.state[_NAME] = member


def joined(theirs: type[Exception] = AssertionError) -> Membership:
    """This rank's membership.

    Raises:
        WorldError: ``init_process_group`` was not called; also ``theirs``, which is what MegEngine raises there.
    """
    member = membership()
    if member is None:
        raise also(WorldError, theirs)(_WHAT_IT_SAYS[theirs])
    return member
