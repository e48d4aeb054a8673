"""Inputs and answers as text, one for each rank."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collshim.conformance import reference
from collshim.conformance.bindings.answers import Answer, Failure, Handle, Opaque, Seen, Shaped, Tree
from collshim.conformance.bindings.binding import Binding
from collshim.conformance.cases import OBJECTS, PART_PER_RANK, Case
from collshim.conformance.dtypes import computable, name_of
from collshim.conformance.recorder.asked import Asked
from collshim.conformance.recorder.trees import array_of, is_array

_ELEMENTS = 64  # the elements of an array that are shown; others in the middle are omitted
_OUTSIDE = "not in the group"


def inputs(case: Case) -> tuple[str, ...]:
    """Return the input of each rank of the world."""
    if case.collective == "barrier":
        return ("",) * case.size
    values: list[Any] = list(_inputs(case))
    return tuple(tree(values[case.ranks.index(rank)]) if rank in case.ranks else _OUTSIDE for rank in range(case.size))


def answer(reply: Answer | Failure) -> str:
    """Return what a rank held after the call, or the exception that it raised."""
    if isinstance(reply, Failure):
        return f"raised {reply.classes[0]}: {reply.message}"
    lines = [
        f"returned: {tree(reply.returned)}",
        *(f"{name}: {tree(value)}" for name, value in reply.arguments.items()),
    ]
    return "\n".join([*lines, *(fact if holds else f"not: {fact}" for fact, holds in reply.facts.items())])


def expected(binding: Binding, case: Case) -> tuple[str, ...]:
    """Return what each rank should hold after the call, or the exception that it should raise."""
    refusal = binding.refusal(case)
    if refusal is not None:
        return (f"raises {refusal.error}",) * case.size
    places = {rank: place for place, rank in enumerate(case.ranks)}
    return tuple(
        answer(binding.expected(case, places[rank], reference)) if rank in places else _OUTSIDE
        for rank in range(case.size)
    )


def tree(node: Tree) -> str:
    """Format a tree of an answer, or of NumPy arrays."""
    if isinstance(node, Seen):
        return array(node.values)
    if isinstance(node, np.ndarray):
        return array(node)
    if isinstance(node, Handle):
        return f"handle, whose wait() returned {tree(node.waited)}"
    if isinstance(node, Shaped):
        return f"{node.dtype}[{', '.join(map(str, node.shape))}] of any values"
    if isinstance(node, Opaque):
        return f"a {node.type}"
    if isinstance(node, dict):
        return f"{{{', '.join(f'{key!r}: {tree(value)}' for key, value in node.items())}}}"
    if isinstance(node, list | tuple):
        inner = ", ".join(map(tree, node))
        return f"[{inner}]" if isinstance(node, list) else f"({inner}{',' * (len(node) == 1)})"
    return repr(node)


def array(values: NDArray[Any], dtype: str = "") -> str:
    """Format an array by its dtype, shape and values."""
    text = np.array2string(
        computable(values), separator=", ", threshold=_ELEMENTS, max_line_width=100_000, floatmode="unique"
    )
    shape = ", ".join(map(str, values.shape))
    numbers = re.sub(r"\s+", " ", text).replace("[ ", "[")  # NumPy pads numbers to columns
    return f"{dtype or name_of(values.dtype)}[{shape}] {numbers}"


def recorded_inputs(asked: Asked) -> tuple[str, ...]:
    """Return the arguments of each rank of a recorded call."""
    ranks = range(asked.processes)
    return tuple("\n".join(f"{name} = {plain(tree)}" for name, tree in asked.of_rank(rank).items()) for rank in ranks)


def recorded_answer(record: dict[str, Any]) -> str:
    """Return the answer of a rank of a recorded call, or of its replay."""
    if "ended" in record:
        return f"the process {record['ended']}"
    if "raised" in record:
        return f"raised {record['raised'][0].rpartition('.')[2]}: {record['text']}"
    lines = [f"returned: {plain(record['returned'])}"]
    lines += [f"{name}: {plain(value)}" for name, value in record.get("after", {}).items()]
    lines += [f"{name} holds a new object" for name in record.get("replaced", ())]
    lines += [f"{name} is {second}" for name, second in record.get("same", {}).items()]
    return "\n".join(lines + [f"{first} and {second} share memory" for first, second in record.get("shared", ())])


def plain(node: Any) -> str:
    """Format one of the recorder's trees."""
    if is_array(node):
        dtype, values = array_of(node)
        marks = [node[name] for name in ("layout",) if name in node] + ["requires a gradient"] * bool(node.get("grad"))
        return array(values, dtype) + (f" ({', '.join(marks)})" if marks else "")
    if isinstance(node, list):
        return f"[{', '.join(map(plain, node))}]"
    if isinstance(node, dict) and "tuple" in node:
        return f"{node.get('name', '')}({', '.join(map(plain, node['tuple']))})"
    if isinstance(node, dict) and "dict" in node:
        return f"{{{', '.join(f'{key!r}: {plain(value)}' for key, value in node['dict'])}}}"
    if isinstance(node, dict) and "object" in node:
        parts = [f"{name}={plain(value)}" for name, value in node.items() if name != "object"]
        return f"{node['object']}({', '.join(parts)})"
    return "None" if node is None else json.dumps(node, ensure_ascii=False) if isinstance(node, str) else str(node)


def _inputs(case: Case) -> list[Any]:
    if case.collective in OBJECTS:
        return case.object_parts() if case.collective == "scatter_object" else case.objects()
    return list(case.parts()) if case.collective in PART_PER_RANK else list(case.arrays())
