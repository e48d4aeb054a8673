"""What the primitives require when they are made."""

from __future__ import annotations

from typing import Any

from collshim.adapting.refusing import refuse
from collshim.mindspore.communication.groups import Group, initialised, resolved
from collshim.mindspore.ops.primitive import Primitive

OPS = ("sum", "max", "min", "prod", "avg")


class Collective(Primitive):
    """A primitive of a group, which is looked up when it is called; a known one is checked when it is made."""

    def __init__(self, name: str, group: str) -> None:
        super().__init__(name)
        require_type(name, "group", group, str)
        self.add_prim_attr("group", group)
        if initialised() is not None:
            resolved(group)

    @property
    def members(self) -> Group:
        """The group, for this rank."""
        return resolved(self.attrs["group"])

    def global_rank(self, rank: int) -> int:
        """The world's number of a rank in the group; ValueError where it has none."""
        ranks = self.members.ranks
        if not 0 <= rank < len(ranks):
            refuse(ValueError, f"For '{self.name}', the rank must be in [0, {len(ranks)}) of its group, but got {rank}")
        return ranks[rank]


class Reducing(Collective):
    """A primitive that reduces; any text is taken for the operation, and an unknown one refused when it is called."""

    def __init__(self, name: str, op: str, group: str) -> None:
        require_type(name, "op", op, str)
        super().__init__(name, group)
        self.add_prim_attr("op", op)

    @property
    def operation(self) -> str:
        """The operation's name; ValueError where there is none."""
        op = str(self.attrs["op"])
        if op not in OPS:
            refuse(ValueError, f"For '{self.name}', the 'op' must be one of {', '.join(OPS)}, but got {op!r}.")
        return op


def require_type(name: str, what: str, value: Any, kind: type) -> None:
    """Refuse a value of another type; a bool is no int."""
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        text = f"For '{name}', the '{what}' must be {kind.__name__}, but got {type(value).__name__}."
        if what == "group" and name != "AllReduce":
            text = f"For '{name}', the type of 'group' should be 'str', but got type '{type(value).__name__}'."
        refuse(TypeError, text)
