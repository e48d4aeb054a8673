"""Base classes of the communication primitives, and checks of their arguments."""

from __future__ import annotations

from typing import Any

from collshim.adapting.refusing import refuse
from collshim.mindspore.communication.groups import Group, peek_groups, resolve_group
from collshim.mindspore.ops.primitive import Primitive

OPS = ("sum", "max", "min", "prod", "avg")


class Collective(Primitive):
    """A primitive that communicates in a group, which it looks up in each call.

    A primitive that depends on the group's size also looks it up when it is created, if that is after ``init``.
    """

    _depends_on_size = True

    def __init__(self, name: str, group: str) -> None:
        super().__init__(name)
        require_type(name, "group", group, str)
        self.add_prim_attr("group", group)
        if self._depends_on_size and peek_groups() is not None:
            resolve_group(group)

    @property
    def members(self) -> Group:
        """The group, as this rank sees it."""
        return resolve_group(self.attrs["group"])

    @property
    def rank_size(self) -> int:
        """The number of ranks in the group."""
        return self.members.communicator.size

    def global_rank(self, rank: int) -> int:
        """Return the global rank of a rank in the group; raise ValueError if the group has no such rank."""
        ranks = self.members.ranks
        if not 0 <= rank < len(ranks):
            refuse(ValueError, f"For '{self.name}', the rank must be in [0, {len(ranks)}) of its group, but got {rank}")
        return ranks[rank]


class Reducing(Collective):
    """A primitive that reduces; an unknown reduction is refused in a call, not before."""

    def __init__(self, name: str, op: str, group: str) -> None:
        require_type(name, "op", op, str)
        super().__init__(name, group)
        self.add_prim_attr("op", op)

    @property
    def operation(self) -> str:
        """The reduction's name; raises ValueError if it is unknown."""
        op = str(self.attrs["op"])
        if op not in OPS:
            refuse(ValueError, f"For '{self.name}', the 'op' must be one of {', '.join(OPS)}, but got {op!r}.")
        return op


def require_type(name: str, what: str, value: Any, kind: type) -> None:
    """Refuse a value of the wrong type; a bool does not count as an int."""
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        text = f"For '{name}', the '{what}' must be {kind.__name__}, but got {type(value).__name__}."
        if what == "group" and name != "AllReduce":
            text = f"For '{name}', the type of 'group' should be 'str', but got type '{type(value).__name__}'."
        refuse(TypeError, text)
