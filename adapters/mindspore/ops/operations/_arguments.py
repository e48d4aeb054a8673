"""Base classes of the communication primitives, and checks of their arguments."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from collshim.adapting.refusing import refuse
from collshim.mindspore.communication.groups import Group, peek_groups, resolve_group
from collshim.mindspore.communication.management import get_group_size, get_rank
from collshim.mindspore.ops.primitive import Primitive

OPS = ("sum", "max", "min", "prod", "avg")


class Collective(Primitive):
    """A primitive that communicates in a group, which it looks up in each call.

    A primitive that depends on the group's size also looks it up when it is created, if that is after ``init``.
    """

    _depends_on_size = True
    _wrong_count: type[Exception] = ValueError
    """The class of the error if a call has a wrong number of inputs."""

    def __init_subclass__(cls) -> None:
        """Let calls with a wrong number of inputs raise MindSpore's error."""
        super().__init_subclass__()
        if "__call__" in vars(cls):
            cls.__call__ = _with_all_inputs(cls.__call__)  # type: ignore[method-assign]

    def __init__(self, name: str, group: str) -> None:
        super().__init__(name)
        require_type(name, "group", group, str)
        if self._depends_on_size and peek_groups() is not None:
            resolve_group(group)
        for what, value in _ATTRIBUTES.get(name, {}).items():
            if what in _NUMBERS:  # also a property of the object, which looks the group up
                self.attrs[what] = _NUMBERS[what](group)
            else:
                self.add_prim_attr(what, value)
        self.add_prim_attr("group", group)

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


_NUMBERS: dict[str, Callable[[str], int]] = {"rank_size": get_group_size, "rank_id": get_rank}
_KEPT = {"no_eliminate": True}
_OP, _SIZE, _ID = {"op": None, "group": None}, {"rank_size": None}, {"rank_id": None}
_BACK = {"group": None, "group_back": None, **_KEPT}
_ATTRIBUTES: dict[str, dict[str, Any]] = {
    "AllGather": {"group": None, **_SIZE, "fusion": 0, "mean_flag": False, **_KEPT},
    "AllGatherV": {"group": None, **_SIZE, "mean_flag": False, **_ID},
    "AllReduce": {**_OP, "fusion": 0, "index": 0, **_KEPT},
    "AlltoAll": {"split_count": None, "split_dim": None, "concat_dim": None, "group": None, **_KEPT, **_SIZE},
    "AlltoAllVC": {"group": None, "block_size": None, "transpose": None, **_SIZE, **_ID},
    "Barrier": {"group": None, "side_effect_mem": True},
    "Broadcast": {"root_rank": None, "group": None, **_KEPT},
    "CollectiveGather": {"dest_rank": None, "group": None, **_SIZE, **_ID},
    "CollectiveScatter": {"src_rank": None, "group": None, **_ID, **_SIZE},
    "Receive": {"sr_tag": None, "src_rank": None, "shape": None, "dtype": None, **_BACK},
    "Reduce": {"dest_rank": None, **_OP},
    "ReduceScatter": {**_OP, **_SIZE, "fusion": 0, **_KEPT},
    "ReduceScatterV": {**_OP, **_SIZE, **_ID},
    "Send": {"sr_tag": None, "dest_rank": None, **_BACK},
}
"""Each operation's attributes, in MindSpore's order; those that are arguments are set afterwards."""


def _with_all_inputs(call: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a primitive's ``__call__``.

    Raises:
        TypeError: the call passes an input by name.
        ValueError: the call has fewer or more inputs than the primitive takes; some primitives raise another class.
    """
    inputs = [one for one in inspect.signature(call).parameters.values() if one.kind is one.POSITIONAL_OR_KEYWORD][1:]
    fewest = sum(one.default is one.empty for one in inputs)

    @functools.wraps(call)
    def checked(self: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            text = f"inputs must be passed by position, but got the keyword argument {next(iter(kwargs))!r}"
            refuse(TypeError, f"For primitive[{self.name}], {text}")
        if not fewest <= len(args) <= len(inputs):
            text = f"the input number must be equal to {len(inputs)}, but got {len(args)}."
            refuse(self._wrong_count, f"For primitive[{self.name}], {text}")
        return call(self, *args)

    return checked


def require_type(name: str, what: str, value: Any, kind: type) -> None:
    """Refuse a value of the wrong type; a bool does not count as an int."""
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        text = f"For '{name}', the '{what}' must be {kind.__name__}, but got {type(value).__name__}."
        if what == "group" and name != "AllReduce":
            text = f"For '{name}', the type of 'group' should be 'str', but got type '{type(value).__name__}'."
        refuse(TypeError, text)
