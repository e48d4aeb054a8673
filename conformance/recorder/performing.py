"""Makes one call on one rank, and describes the rank's state after it.

An answer is {"returned": tree, "after": {name: tree}, ...} with

    after     inputs that changed, and variables that the text made, by name
    replaced  places in the inputs that hold a new object
    same      results and new variables that are an input itself: place -> place
    shared    pairs of places that share memory; "x before" is an object that was replaced

or {"raised": [class, its bases ...], "text": ...}, or {"ended": "hung" | "died"} if the rank did not answer. A "limit"
marks an exception that shows a limit of the recorded backend, not of the framework; a "consequence" marks one that
reports another rank's exception.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import cache
from itertools import combinations
from threading import Lock
from types import CodeType
from typing import Any

from collshim.conformance.recorder.asked import Asked
from collshim.conformance.recorder.trees import Arrays, Tree, decode, encode, leaves

Answer = dict[str, Any]
_TEXT = 400  # the characters of an exception's text that are kept
# Colours; paths, addresses, ports, times and process numbers of the recording machine.
_SCRUBBED = {
    r"\x1b\[[0-9;]*m": "",
    r"(/[\w.\-]+){2,}": "PATH",
    r"\b0x[0-9a-f]{6,}": "0xADDRESS",
    r"\]:\d{2,5}\b": "]:PORT",
    r"\[[A-Z]\d{4} [\d:.]+ ": "[",
}


def perform(asked: Asked, rank: int, names: Mapping[str, Any], arrays: Arrays) -> Answer:
    """Return the answer of rank ``rank``; the text can use ``names`` and its inputs."""
    inputs = {name: decode(tree, arrays) for name, tree in asked.of_rank(rank).items()}
    before = {name: encode(value, arrays) for name, value in inputs.items()}
    objects = dict(leaf for name, value in inputs.items() for leaf in leaves(value, arrays, name))
    space = {**names, **inputs, "rank": rank, "size": asked.size}
    seen = set(space)
    try:
        returned = _run(asked.call, space)
        made = {name: space[name] for name in space if _is_made(name, space[name], seen)}
        held = {name: space[name] for name in inputs} | made
        return _answer(returned, held, before, objects, arrays)
    except Exception as error:
        return raised(error)


def raised(error: BaseException) -> Answer:
    """Return the answer of a rank on which ``error`` was raised."""
    classes = [_name(cls) for cls in type(error).__mro__ if cls not in (object, BaseException)]
    return {"raised": classes, "text": scrub(str(error))}


def scrub(text: str) -> str:
    """Return the beginning of an exception's text, without details of the recording machine."""
    for pattern, instead in _SCRUBBED.items():
        text = re.sub(pattern, instead, text)
    return text.strip()[:_TEXT]


def _run(call: str, space: dict[str, Any]) -> Any:
    """Execute the text; return the value of its last statement if that is an expression."""
    with _COMPILING:
        statements, last = _compile(call)
    exec(statements, space)
    return None if last is None else eval(last, space)


_COMPILING = Lock()  # ast.parse in several threads at once fails in Python 3.11


@cache
def _compile(call: str) -> tuple[CodeType, CodeType | None]:
    body = ast.parse(call).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    statements = compile(ast.Module(body, []), "<call>", "exec")
    return statements, compile(ast.Expression(last.value), "<call>", "eval") if isinstance(last, ast.Expr) else None


def _is_made(name: str, value: object, seen: set[str]) -> bool:
    return name not in seen and not name.startswith("_") and not callable(value)


def _answer(
    returned: Any, held: Mapping[str, Any], before: Mapping[str, Tree], objects: Mapping[str, Any], arrays: Arrays
) -> Answer:
    after = {name: encode(value, arrays) for name, value in held.items()}
    changed = {name: tree for name, tree in after.items() if name not in before or tree != before[name]}
    now = dict(leaf for name, value in held.items() for leaf in leaves(value, arrays, name))
    replaced = [path for path, array in objects.items() if path in now and now[path] is not array]
    results = dict(leaves(returned, arrays, "returned"))
    made = {path: array for path, array in now.items() if path not in objects or path in replaced}
    same = {path: _place_of(array, objects) for path, array in {**results, **made}.items()}
    kept = {path: place for path, place in same.items() if place}
    before_now = {f"{path} before": objects[path] for path in replaced}
    if not arrays.mutable:
        kept = {}
    everything = {**now, **before_now, **{path: array for path, array in results.items() if path not in kept}}
    found = {
        "returned": encode(returned, arrays),
        "after": changed,
        "replaced": replaced,
        "same": kept,
        "shared": _shared(everything, kept, arrays),
    }
    return {name: value for name, value in found.items() if value or name == "returned"}


def _place_of(array: Any, objects: Mapping[str, Any]) -> str | None:
    return next((path for path, other in objects.items() if other is array), None)


def _shared(everything: Mapping[str, Any], kept: Mapping[str, str], arrays: Arrays) -> list[list[str]]:
    if not arrays.mutable:
        return []
    pairs = combinations((item for item in everything.items() if item[0] not in kept), 2)
    return [[one, other] for (one, a), (other, b) in pairs if a is b or arrays.overlap(a, b)]


def _name(cls: type) -> str:
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
