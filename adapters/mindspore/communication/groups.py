"""This rank's named groups, kept in its world; ``GlobalComm``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NoReturn, cast

from collshim import world
from collshim.communicator import Communicator
from collshim.errors import ArgumentError, WorldError, also

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
    """What ``init`` leaves in this rank's world: the backend's name, and every group by name."""

    backend: str
    by_name: dict[str, Group] = field(default_factory=dict[str, Group])

    @property
    def world_name(self) -> str:
        """What the backend calls the group of all ranks."""
        return f"{self.backend}_world_group"


class _PerRank(type):
    """The attributes of ``GlobalComm``, answered for the rank that asks."""

    @property
    def BACKEND(cls) -> str:
        known = initialised()
        return known.backend if known else "hccl"

    @property
    def WORLD_COMM_GROUP(cls) -> str:
        known = initialised()
        return known.world_name if known else HCCL_WORLD_COMM_GROUP

    @property
    def INITED(cls) -> bool:
        return initialised() is not None

    @property
    def CHECK_ENVS(cls) -> bool:
        return True


class GlobalComm(metaclass=_PerRank):
    """What ``init`` has set for this rank.

    Attributes:
        BACKEND: ``"hccl"`` before ``init``, then the backend.
        WORLD_COMM_GROUP: the name of the group of all ranks.
        INITED: whether ``init`` was called.
        CHECK_ENVS: True.
    """


def initialised() -> Groups | None:
    """This rank's groups; None before ``init``."""
    here = world.peek()
    known = here.state.get("mindspore") if here else None
    return known if isinstance(known, Groups) else None


def groups() -> Groups:
    """This rank's groups; an error before ``init``."""
    known = initialised()
    if known is None:
        raise WorldError(NOT_INITED)
    return known


def named(group: str) -> Group:
    """The group of that very name.

    Raises:
        RuntimeError: "The group x does not exist." for this rank.
    """
    known = groups()
    if group in known.by_name:
        return known.by_name[group]
    if group == known.world_name:
        everybody = world.current().communicator
        return Group(group, list(range(everybody.size)), everybody)
    refuse(RuntimeError, f"The group {group} does not exist.")


def resolved(group: str) -> Group:
    """The group of that name, where ``"hccl_world_group"`` means all ranks whatever the backend."""
    return named(groups().world_name if group == HCCL_WORLD_COMM_GROUP else group)


def refuse(theirs: type[Exception], text: str) -> NoReturn:
    """Raise an ArgumentError that is also ``theirs``: MindSpore's words, and on which rank."""
    here = world.peek()
    where = f" (rank {here.rank} of {here.size})" if here else ""
    kind = also(ArgumentError, cast(Any, theirs))  # mypy: a type[Exception] is no Hashable
    raise kind(text + where)
