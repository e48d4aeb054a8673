"""This rank's groups by name, with the interface of MindSpore's own ``CollectiveManager``."""

from __future__ import annotations

import importlib
import os
from typing import Any

from collshim import world
from collshim.adapting.refusing import refuse
from collshim.communicator import Communicator
from collshim.errors import ArgumentError, WorldError, also, refusal
from collshim.patching.replacing import Foreign
from collshim.transports.rendezvous.serving import reach_store, serve_store

ALIAS = "hccl_world_group"
"""The name of MindSpore's default group, which means all ranks."""
_STORE = "collshim store"


class NamedGroups:
    """Replaces ``CollectiveManager``; there is one instance."""

    def __init__(self) -> None:
        self._comm: Any = importlib.import_module("mindspore.communication._comm_helper").GlobalComm
        self._groups: dict[str, Communicator] = {}
        self._joined = False

    def get_instance(self) -> NamedGroups:
        """Return this object."""
        return self

    def join(self) -> None:
        """Join the world that the launcher's variables describe, or MindSpore's variables if there are no others."""
        if os.environ.get("MS_ROLE") == "MS_SCHED":
            raise SystemExit(0)  # ranks connect without a scheduler
        given, own = os.environ, {"RANK_ID", "RANK_SIZE"}
        if world.peek() is None and "RANK" not in given and own <= given.keys():
            port = given.get("MS_SCHED_PORT")
            host = given.get("MS_SCHED_HOST")
            number = int(port) if port else None
            world.init(int(given["RANK_ID"]), int(given["RANK_SIZE"]), address=host, port=number)
        world.current()
        self._joined = True

    def join_with_store(self, timeout: int, size: int, rank: int, store: Foreign, name: str) -> None:
        """Do the same as ``join``; rank 0 publishes the port of collshim's store in MindSpore's store."""
        if world.peek() is None:
            if rank == 0:
                ours = serve_store(store.host)
                store.set(_STORE, str(ours.port))
            else:
                ours = reach_store(store.host, int(store.get(_STORE)), timeout=timeout / 1000)
            world.init(rank, size, address=store.host, store=ours, overrides=True)
        here = world.current()
        if (here.rank, here.size) != (rank, size):
            text = f"init_process_group: rank {rank} of {size} was asked for, should be this rank's own"
            raise also(WorldError, ValueError)(f"{text} (rank {here.rank} of {here.size})")
        if name:
            self._groups[name] = here.communicator
        self._joined = True

    def leave(self) -> None:
        """Forget the groups; the world stays up, and ranks keep their numbers."""
        self._groups.clear()
        self._joined = False

    def initialized(self) -> bool:
        """Return whether this process has joined."""
        return self._joined

    def communicator(self, group: str) -> Communicator:
        """Return the group's communicator; ``hccl_world_group`` means all ranks if no group has that name.

        Raises:
            TypeError: the group is not a name.
            RuntimeError: this rank has no group of that name.
        """
        if not isinstance(group, str):
            here = world.current()
            text = refusal("group", "the name", repr(group), "a str", here.rank, here.size)
            raise also(ArgumentError, TypeError)(text)
        return self._all() if group == ALIAS and group not in self._groups else self._named(group)

    def get_rank_id(self, group: str) -> int:
        """Return this rank's number in the group."""
        return self.communicator(group).rank

    def get_group_size(self, group: str) -> int:
        """Return the number of ranks in the group."""
        return self.communicator(group).size

    def get_local_rank_id(self, group: str) -> int:
        """Return this rank's number among the group's ranks on its machine."""
        return self._neighbours(group).index(world.current().rank)

    def get_local_group_size(self, group: str) -> int:
        """Return the number of the group's ranks on this machine."""
        return len(self._neighbours(group))

    def get_world_rank_from_group_rank(self, group: str, rank: int) -> int:
        """Convert a rank in the group to a global rank."""
        ranks = self._named(group).ranks
        if not 0 <= rank < len(ranks):
            refuse(RuntimeError, f"Group {group} doesn't contain the group rank {rank}")
        return ranks[rank]

    def get_group_rank_from_world_rank(self, rank: int, group: str) -> int:
        """Convert a global rank to a rank in the group."""
        ranks = list(self._named(group).ranks)
        if rank not in ranks:
            refuse(RuntimeError, f"Group {group} doesn't contain the global rank {rank}")
        return ranks.index(rank)

    def get_group_ranks(self, group: str) -> list[int]:
        """Return the global ranks of the group's members, in the group's order."""
        if group not in self._groups and group != self._comm.WORLD_COMM_GROUP:
            refuse(RuntimeError, f"Group {group} doesn't include this rank {world.current().rank} process.")
        return list(self._named(group).ranks)

    def get_group_map(self) -> dict[str, list[int]]:
        """Return the global ranks of all groups of this rank, by name."""
        return {name: list(comm.ranks) for name, comm in self._groups.items()}

    def create_group(self, group: str, rank_ids: list[int], options: Foreign = None) -> bool:
        """Make a group of that name; only its members need to call this. Return whether this rank is a member."""
        made = self._all().subgroup(rank_ids, kept=True)
        if made is not None:
            self._groups[group] = made
        return made is not None

    def destroy_group(self, group: str) -> bool:
        """Forget the group of that name."""
        return self._groups.pop(group, None) is not None

    remove_group_info = destroy_group

    def get_comm_name(self, group: str) -> str:
        """Return an empty name: there is no HCCL communicator for the group."""
        self._named(group)
        return ""

    def wait_all_comm_init(self) -> bool:
        """Return True: a group is connected as soon as it is made."""
        return True

    def _all(self) -> Communicator:
        return world.current().communicator

    def _named(self, group: str) -> Communicator:
        if group in self._groups:
            return self._groups[group]
        if group != self._comm.WORLD_COMM_GROUP:
            refuse(RuntimeError, f"The group {group} does not exist.")
        return self._all()

    def _neighbours(self, group: str) -> list[int]:
        here = world.current()
        machine = here.rank // here.local_size
        return [rank for rank in self._named(group).ranks if rank // here.local_size == machine]
