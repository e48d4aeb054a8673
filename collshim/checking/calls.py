"""The collectives that a file calls: the function, the place of its result, and its arguments by name."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import libcst as cst

from collshim.checking import adapters
from collshim.checking.adapters import Instance, Missing
from collshim.checking.values import Values
from collshim.frameworks import FRAMEWORKS

Place = Literal["argument", "pair", "returned"]
_MADE_BY_ALL = ("torch.distributed.new_group", "tensorflow.distribute.ReplicaContext.merge_call")
_OF_ONE_PROCESS = ("MirroredStrategy", "OneDeviceStrategy", "CentralStorageStrategy")
_GROUPS = ("group", "process_group")
_WORLD = ("None", "WORLD", "hccl_world_group", "nccl_world_group", "mccl_world_group")


@dataclass(frozen=True)
class Collective:
    """A function whose call every rank of a group must make.

    Attributes:
        path: its full name.
        kind: the collective, such as ``all_reduce``.
        result: how it returns its result: in an argument, in a pair with a handle, or alone.
        reduces: whether it combines the ranks' values.
    """

    path: str
    kind: str
    result: Place

    @property
    def name(self) -> str:
        """The last part of the function's name."""
        return self.path.rpartition(".")[2]

    @property
    def framework(self) -> str:
        """The package of the function's framework."""
        return self.path.partition(".")[0]


@dataclass(frozen=True, eq=False)
class Call:
    """A call of a collective.

    Attributes:
        node: the call.
        collective: the function.
        arguments: its arguments by parameter name, as far as they are known.
        is_local: whether it combines only the replicas of this process, as TensorFlow's ``MirroredStrategy`` does.
    """

    node: cst.Call
    collective: Collective
    arguments: Mapping[str, cst.BaseExpression]
    is_local: bool = False

    def is_of_world(self) -> bool:
        """Return whether the group contains all ranks, as far as the source shows."""
        groups = [self.arguments[name] for name in _GROUPS if name in self.arguments]
        return not self.is_local and all(
            _text(group).rpartition(".")[2].strip("\"'") in _WORLD or "WORLD" in _text(group) for group in groups
        )

    def is_async(self) -> bool:
        """Return whether the call returns a handle, or may return one."""
        chosen = self.arguments.get("async_op")
        return chosen is not None and _text(chosen) != "False"

    def array(self) -> cst.BaseExpression | None:
        """Return the argument that the collective sends, or writes."""
        return next(iter(self.arguments.values()), None)


def call_of(node: cst.Call, values: Values) -> Call | None:
    """Return the ``Call`` of a node that calls a collective; None for other nodes."""
    function = values.of(node.func)
    if function is None or isinstance(function, Missing):
        return None
    collective = _collective(function) or (_method(node.func, values) if isinstance(node.func, cst.Attribute) else None)
    if collective is None or (isinstance(function, type) and function in _primitives()):
        return None  # creating a primitive calls no collective
    owner = values.of(node.func.value) if isinstance(node.func, cst.Attribute) else None
    is_local = isinstance(owner, Instance) and owner.kind.__name__ in _OF_ONE_PROCESS
    return Call(node, collective, arguments_of(node, function), is_local)


def arguments_of(node: cst.Call, function: Any) -> dict[str, cst.BaseExpression]:
    """Return a call's arguments by parameter name."""
    names = adapters.parameters(function)
    found: dict[str, cst.BaseExpression] = {}
    for argument in node.args:
        if argument.star:
            break
        name = argument.keyword.value if argument.keyword else next(names, None)
        if name is not None:
            found[name] = argument.value
    return found


def primitive_of(function: Any) -> Collective | None:
    """Return the collective of a class of MindSpore's primitives."""
    return _primitives().get(function) if isinstance(function, type) else None


def _collective(function: Any) -> Collective | None:
    if isinstance(function, Instance):
        return _primitives().get(function.kind)
    return _functions().get(id(function))


def _method(node: cst.Attribute, values: Values) -> Collective | None:
    """Return the collective of a method, which a class may have overridden."""
    owner = values.of(node.value)
    kinds = owner.kind.__mro__ if isinstance(owner, Instance) else ()
    methods = ((kind, vars(kind).get(node.attr.value)) for kind in kinds)
    return next((found for _, method in methods if (found := _functions().get(id(method)))), None)


@functools.cache
def _known() -> tuple[tuple[Any, Collective], ...]:
    """Return the adapters' objects that are collectives."""
    found = []
    for framework in FRAMEWORKS:
        spellings = importlib.import_module(f"collshim.conformance.spellings.{framework}").SPELLINGS
        for spelling in spellings:
            if not spelling.collective.startswith("ring"):
                place = _place(spelling)
                found.append((adapters.look_up(spelling.path), Collective(spelling.path, spelling.collective, place)))
    groups = [(adapters.look_up(path), Collective(path, path.rpartition(".")[2], "returned")) for path in _MADE_BY_ALL]
    return (*found, *groups)


def _place(spelling: Any) -> Place:
    if spelling.result != "returned" or spelling.collective == "barrier":
        return "argument"
    wrap = getattr(spelling, "wrap", None)
    wrapped = wrap([0]) if wrap is not None and not spelling.options else None
    return "pair" if isinstance(wrapped, tuple) and len(wrapped) == 2 and wrapped[1] is None else "returned"


@functools.cache
def _functions() -> Mapping[int, Collective]:
    """Return the collectives by the identities of the adapters' functions; the first name of each counts."""
    return {id(thing): collective for thing, collective in reversed(_known()) if not isinstance(thing, type)}


@functools.cache
def _primitives() -> Mapping[type, Collective]:
    return {thing: collective for thing, collective in reversed(_known()) if isinstance(thing, type)}


def _text(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node)
