"""Inputs and answers as text, one for each rank."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collshim.conformance.bindings.answers import Answer, Failure, Handle, Opaque, Seen, Tree
from collshim.conformance.cases import OBJECTS, PART_PER_RANK, Case
from collshim.conformance.recorder.asked import Asked
from collshim.conformance.recorder.trees import array_of, is_array

_ELEMENTS = 64  # of an array; more are left out in the middle
_OUTSIDE = "not in the group"


def inputs(case: Case) -> tuple[str, ...]:
    """What each rank of the world gives."""
    if case.collective == "barrier":
        return ("",) * case.size
    given: list[Any] = list(_given(case))
    return tuple(tree(given[case.ranks.index(rank)]) if rank in case.ranks else _OUTSIDE for rank in range(case.size))


def answer(found: Answer | Failure) -> str:
    """What a rank held after the call, or what it raised."""
    if isinstance(found, Failure):
        return f"raised {found.classes[0]}: {found.message}"
    lines = [f"returned: {tree(found.returned)}", *(f"{name}: {tree(held)}" for name, held in found.arguments.items())]
    return "\n".join([*lines, *(fact if holds else f"not: {fact}" for fact, holds in found.facts.items())])


def tree(found: Tree) -> str:
    """A tree of an answer, or of NumPy arrays."""
    if isinstance(found, Seen):
        return array(found.values)
    if isinstance(found, np.ndarray):
        return array(found)
    if isinstance(found, Handle):
        return f"handle, whose wait() gave {tree(found.waited)}"
    if isinstance(found, Opaque):
        return f"a {found.type}"
    if isinstance(found, dict):
        return f"{{{', '.join(f'{key!r}: {tree(value)}' for key, value in found.items())}}}"
    if isinstance(found, list | tuple):
        inner = ", ".join(map(tree, found))
        return f"[{inner}]" if isinstance(found, list) else f"({inner}{',' * (len(found) == 1)})"
    return repr(found)


def array(values: NDArray[Any], dtype: str = "") -> str:
    """An array by its dtype, shape and values."""
    text = np.array2string(values, separator=", ", threshold=_ELEMENTS, max_line_width=100_000)
    shape = ", ".join(map(str, values.shape))
    numbers = re.sub(r"\s+", " ", text).replace("[ ", "[")  # NumPy pads them to columns
    return f"{dtype or values.dtype}[{shape}] {numbers}"


def recorded_inputs(asked: Asked) -> tuple[str, ...]:
    """What each rank of a recorded call was given."""
    ranks = range(asked.processes)
    return tuple("\n".join(f"{name} = {plain(tree)}" for name, tree in asked.of_rank(rank).items()) for rank in ranks)


def recorded_answer(found: dict[str, Any]) -> str:
    """What a rank of a recorded call, or of its replay, answered."""
    if "ended" in found:
        return f"the process {found['ended']}"
    if "raised" in found:
        return f"raised {found['raised'][0].rpartition('.')[2]}: {found['text']}"
    lines = [f"returned: {plain(found['returned'])}"]
    lines += [f"{name}: {plain(held)}" for name, held in found.get("after", {}).items()]
    lines += [f"{name} holds another object than before" for name in found.get("replaced", ())]
    lines += [f"{name} is {other}" for name, other in found.get("same", {}).items()]
    return "\n".join(lines + [f"{one} and {other} share memory" for one, other in found.get("shared", ())])


def plain(found: Any) -> str:
    """A tree of the recorder's."""
    if is_array(found):
        dtype, values = array_of(found)
        marks = [found[name] for name in ("layout",) if name in found] + ["requires a gradient"] * bool(
            found.get("grad")
        )
        return array(values, dtype) + (f" ({', '.join(marks)})" if marks else "")
    if isinstance(found, list):
        return f"[{', '.join(map(plain, found))}]"
    if isinstance(found, dict) and "tuple" in found:
        return f"{found.get('name', '')}({', '.join(map(plain, found['tuple']))})"
    if isinstance(found, dict) and "dict" in found:
        return f"{{{', '.join(f'{key!r}: {plain(value)}' for key, value in found['dict'])}}}"
    if isinstance(found, dict) and "object" in found:
        parts = [f"{name}={plain(value)}" for name, value in found.items() if name != "object"]
        return f"{found['object']}({', '.join(parts)})"
    return "None" if found is None else json.dumps(found, ensure_ascii=False) if isinstance(found, str) else str(found)


def _given(case: Case) -> list[Any]:
    if case.collective in OBJECTS:
        return case.object_parts() if case.collective == "scatter_object" else case.objects()
    return list(case.parts()) if case.collective in PART_PER_RANK else list(case.arrays())
