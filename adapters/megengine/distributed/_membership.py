"""A rank's state after ``init_process_group``; each rank stores it in its world."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from collshim import world
from collshim.communicator import Communicator
from collshim.errors import CollshimError, PeerError, WorldError, also
from collshim.megengine.distributed.server import Client, Server, listens

_NAME = "megengine"
_ADVICE = "please call init_process_group first"
_REFUSALS: dict[type[Exception], tuple[type[CollshimError], str]] = {
    AssertionError: (also(WorldError, AssertionError), _ADVICE),
    TypeError: (also(WorldError, TypeError), f"object of type 'NoneType' has no len(): {_ADVICE}"),
    AttributeError: (
        also(WorldError, AttributeError),
        f"'NoneType' object has no attribute '_tuple_shape': {_ADVICE}",
    ),
}


@dataclass
class Membership:
    """This rank's membership of the process group.

    Attributes:
        world: the collshim world that was joined or started.
        server: the server that this rank runs for the other ranks; None if there is none.
        machine_ranks: the ranks that the launcher on this machine started; None without a launcher.
        next_stream: the stream number of the next ``Group``; every new group gets a new one.
    """

    world: world.World
    master_ip: str
    port: int
    device: int
    backend: str
    device_type: str
    server: Server | None = None
    machine_ranks: tuple[int, ...] | None = None
    next_stream: int = 2
    _communicators: dict[tuple[int, ...], Communicator] = field(default_factory=dict)

    @cached_property
    def client(self) -> Client:
        """This rank's client of the store at ``master_ip:port``."""
        if not listens(self.master_ip, self.port):
            text = "the world existed before init_process_group: start a Server to share values"
            raise PeerError(f"no megengine Server listens at {self.master_ip}:{self.port} ({self.where()}); {text}")
        return Client(self.master_ip, self.port)

    def where(self) -> str:
        """``rank 1 of 4``, for error texts."""
        return f"rank {self.world.rank} of {self.world.size}"

    def communicator(self, ranks: tuple[int, ...]) -> Communicator:
        """Return the communicator of these global ranks in this order; groups of the same ranks share one."""
        if ranks not in self._communicators:
            self._communicators[ranks] = self._make(ranks)
        return self._communicators[ranks]

    def _make(self, ranks: tuple[int, ...]) -> Communicator:
        world_communicator = self.world.communicator
        communicator = (
            world_communicator if ranks == world_communicator.ranks else world_communicator.subgroup(ranks, kept=True)
        )
        if communicator is None:
            raise also(WorldError, AssertionError)(f"group {list(ranks)} does not contain rank {self.world.rank}")
        return communicator


def membership() -> Membership | None:
    """Return this rank's membership; None before ``init_process_group``."""
    current_world = world.peek()
    return None if current_world is None else current_world.state.get(_NAME)


def join(member: Membership) -> None:
    """Make this rank a member."""
    member.world.state[_NAME] = member


def joined(exception: type[Exception] = AssertionError) -> Membership:
    """Return this rank's membership.

    Raises:
        WorldError: ``init_process_group`` was not called. The error is also an ``exception``, which MegEngine raises.
    """
    member = membership()
    if member is None:
        kind, text = _REFUSALS[exception]
        raise kind(text)
    return member
