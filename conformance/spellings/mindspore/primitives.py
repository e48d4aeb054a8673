"""The primitives of ``mindspore.ops``: classes whose instances are called. Roots are ranks in the group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from collshim.conformance.bindings.answers import Tree
from collshim.conformance.bindings.arguments import Invocation
from collshim.conformance.bindings.barriers import Barrier
from collshim.conformance.bindings.binding import Binding
from collshim.conformance.bindings.spelling import Spelling
from collshim.conformance.spellings.mindspore.common import (
    ANY,
    FRAMEWORK,
    REDUCED,
    ROWS,
    placeholder,
    spelled,
)


def _call_instance(asked: Invocation) -> Tree:
    return asked.function(**asked.keywords)(*asked.positional)


def _call_instance_with_tuple(asked: Invocation) -> Tree:
    return asked.function(**asked.keywords)(asked.positional)


def _in_tuple(value: Tree) -> Tree:
    return (value,)


def _spelled(name: str, collective: str, takes: Mapping[str, str] | None = None, **more: Any) -> Spelling:
    parameters = {"input_x": "array", **(takes or {})}
    return spelled(f"ops.{name}", collective, parameters, **{"arrangement": "joined", "speak": _call_instance} | more)


PRIMITIVES: tuple[Binding, ...] = (
    _spelled("AllGather", "all_gather", admits=replace(ROWS, gradient=True)),
    _spelled("AllReduce", "all_reduce", {"op": "mint's op"}, admits=replace(REDUCED, gradient=True)),
    _spelled(
        "AlltoAll",
        "all_to_all",
        {
            "split_count": "size of the group",
            "split_dim": "axis to cut, of either sign",
            "concat_dim": "axis of either sign",
        },
        admits=replace(ROWS, axes=True, split_axes=True),
    ),
    _spelled("ReduceScatter", "reduce_scatter", {"op": "mint's op"}, admits=replace(REDUCED, least_ndim=1)),
    _spelled(
        "Broadcast",
        "broadcast",
        {"root_rank": "root in the group"},
        speak=_call_instance_with_tuple,
        admits=replace(ANY, gradient=True),
        wrap=_in_tuple,
        rule="own",
    ),
    _spelled(
        "Reduce",
        "reduce",
        {"dest_rank": "root in the group", "op": "mint's op"},
        admits=REDUCED,
        off_root=placeholder,
    ),
    _spelled("CollectiveGather", "gather", {"dest_rank": "root in the group"}, admits=ROWS, off_root=placeholder),
    _spelled("CollectiveScatter", "scatter", {"src_rank": "root in the group"}, admits=ROWS),
    Barrier(framework=FRAMEWORK, path="mindspore.ops.Barrier", admits=ANY, made=True),
)
