"""This rank's named groups, kept in its world; ``GlobalComm``."""

from __future__ import annotations

from dataclasses import dataclass, field

from collshim import world
from collshim.adapting.refusing import refuse
from collshim.communicator import Communicator
from collshim.errors import WorldError

HCCL_WORLD_COMM_GROUP = "hccl_world_group"
NCCL_WORLD_COMM_GROUP = "nccl_world_group"
MCCL_WORLD_COMM_GROUP = "mccl_world_group"

NOT_INITED = (
    "Distributed Communication has not been inited.You can't invoke this interface yet. "
    "Please call `init()` method first."
)


@dataclass(frozen=True)
class Group:
    """A group that this rank belongs to; ``ranks`` are its members' global ranks, in group order."""

    name: str
    ranks: list[int]
    communicator: Communicator


@dataclass
class Groups:
    """The state that ``init`` keeps in this rank's world: the backend's name, and every group by name."""

    backend: str
    by_name: dict[str, Group] = field(default_factory=dict[str, Group])

    @property
    def world_name(self) -> str:
        """The backend's name for the group of all ranks."""
        return f"{self.backend}_world_group"


class _PerRank(type):
    """A metaclass with the attributes of ``GlobalComm``, for the calling rank."""

    @property
    def BACKEND(cls) -> str:
        state = peek_groups()
        return state.backend if state else "hccl"

    @property
    def WORLD_COMM_GROUP(cls) -> str:
        state = peek_groups()
        return state.world_name if state else HCCL_WORLD_COMM_GROUP

    @property
    def INITED(cls) -> bool:
        return peek_groups() is not None

    @property
    def CHECK_ENVS(cls) -> bool:
        return _Checks.environment

    @CHECK_ENVS.setter
    def CHECK_ENVS(cls, checked: bool) -> None:
        _Checks.environment = checked


class _Checks:
    """The value of CHECK_ENVS, which programs set around ``init``; stored, without effect."""

    environment = True


class GlobalComm(metaclass=_PerRank):
    """This rank's state, which ``init`` sets.

    Attributes:
        BACKEND: the backend; ``"hccl"`` before ``init``.
        WORLD_COMM_GROUP: the name of the group of all ranks.
        INITED: whether ``init`` was called.
        CHECK_ENVS: True, or the value that the program set; it has no effect.
    """


def peek_groups() -> Groups | None:
    """Return this rank's groups; None before ``init``."""
    current_world = world.peek()
    state = current_world.state.get("mindspore") if current_world else None
    return state if isinstance(state, Groups) else None


def groups() -> Groups:
    """Return this rank's groups; raise an error before ``init``."""
    state = peek_groups()
    if state is None:
        raise WorldError(NOT_INITED)
    return state


def find_group(group: str) -> Group:
    """Return the group of exactly that name.

    Raises:
        RuntimeError: "The group x does not exist." for this rank.
    """
    state = groups()
    if group in state.by_name:
        return state.by_name[group]
    if group == state.world_name:
        comm = world.current().communicator
        return Group(group, list(range(comm.size)), comm)
    refuse(RuntimeError, f"The group {group} does not exist.")


def resolve_group(group: str) -> Group:
    """Return the group of that name; ``"hccl_world_group"`` means all ranks for every backend."""
    return find_group(groups().world_name if group == HCCL_WORLD_COMM_GROUP else group)
