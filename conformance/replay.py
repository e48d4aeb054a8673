"""A recording beside collshim's adapter: the same call again, and what differs, in one sentence each.

    comm.all_gather/2d@3: outs[1] at [0, 2] is 5.0, should be 8.0 (rank 0 of 3)
    for `flow.comm.all_gather(outs, x)`

Structures, dtypes, shapes, kinds of arrays, what is mutated, replaced, the same object or shared memory, and classes
of exceptions are compared exactly; values bit for bit, except those of reductions of inexact dtypes, which have
``TOLERANCE``. An exception agrees when the adapter's is an instance of the recorded class.

Three kinds of recording have an answer of which not all can be compared: an accident, where the framework hung or
died, so that the adapter's rank only must answer or raise an error of collshim's own; a limit of the backend that
recorded, beyond which the adapter must answer; and a consequence of what another rank raised.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collshim.conformance.recorder.performing import Answer
from collshim.conformance.recorder.recordings import Recording
from collshim.conformance.recorder.trees import KINDS, Tree, array_of, is_array

Difference = tuple[str, str, str]  # what, what it is, what it should be

# Relative and absolute, for sums of at most four small numbers in another order.
TOLERANCE = {
    "bfloat16": 2e-2,
    "float16": 2e-3,
    "float32": 1e-5,
    "float64": 1e-12,
    "complex64": 1e-5,
    "complex128": 1e-12,
}
REDUCING = re.compile(r"reduce|Reduce|gradient|MEAN|SUM")
OURS = "collshim.errors.CollshimError"


def sentences(recording: Recording, answers: list[Answer]) -> list[str]:
    """What differs on any rank, one sentence for each."""
    size = len(answers)
    return [
        f"{recording.name}: {what} is {found}, should be {wanted} (rank {rank} of {size})\nfor `{recording.asked.call}`"
        for rank, answer in enumerate(answers)
        for what, found, wanted in differences(recording, rank, answer)
    ]


def differences(recording: Recording, rank: int, answer: Answer) -> Iterator[Difference]:
    """What differs in the answer of ``rank``."""
    wanted = recording.of_rank(rank)
    if "ended" in wanted or "consequence" in wanted:
        yield from _orderly(answer, wanted)
    elif "limit" in wanted and not recording.asked.match:
        if "raised" in answer:
            yield "the exception", _shown(answer), "none: what was recorded is a limit of its backend"
    elif "raised" in wanted:
        yield from _refused(answer, wanted, recording.asked.match)
    elif "raised" in answer:
        yield "the exception", _shown(answer), "none"
    else:
        yield from _answered(answer, wanted, REDUCING.search(recording.asked.call) is not None)


def _orderly(answer: Answer, wanted: Answer) -> Iterator[Difference]:
    if "raised" in answer and OURS not in answer["raised"]:
        yield (
            "the exception",
            _shown(answer),
            f"one of collshim's own, where the framework {wanted.get('ended', 'failed')}",
        )


def _refused(answer: Answer, wanted: Answer, match: str) -> Iterator[Difference]:
    recorded = wanted["raised"][0]
    if "raised" not in answer:
        yield "the exception", "none", f"{recorded}: {wanted['text'][:120]!r}"
    elif not _is_instance(answer["raised"], recorded):
        yield "the class of the exception", _shown(answer), f"{recorded}: {wanted['text'][:120]!r}"
    elif match in wanted["text"] and match not in answer["text"]:
        yield "the text of the exception", repr(answer["text"]), f"one with {match!r}"


def _is_instance(classes: list[str], recorded: str) -> bool:
    """Whether an exception of these classes is one of the recorded class: by name where it is not Python's own."""
    if hasattr(builtins, recorded):
        return recorded in classes
    return recorded.rpartition(".")[2] in {name.rpartition(".")[2] for name in classes}


def _shown(answer: Answer) -> str:
    return f"{answer['raised'][0]}: {answer['text'][:200]!r}" if "raised" in answer else "none"


def _answered(answer: Answer, wanted: Answer, inexact: bool) -> Iterator[Difference]:
    yield from _trees("returned", answer["returned"], wanted["returned"], inexact)
    held, recorded = answer.get("after", {}), wanted.get("after", {})
    for name in sorted(held.keys() | recorded.keys()):
        if name not in held:
            yield name, "as it was given", f"changed: {_brief(recorded[name])}"
        elif name not in recorded:
            yield name, f"changed: {_brief(held[name])}", "as it was given"
        else:
            yield from _trees(name, held[name], recorded[name], inexact)
    for fact, nothing in (("replaced", []), ("same", {}), ("shared", [])):
        found, should = answer.get(fact, nothing), wanted.get(fact, nothing)
        if found != should:
            yield _FACTS[fact], str(found), str(should)


_FACTS = {
    "replaced": "what holds another object than before",
    "same": "what is an input itself",
    "shared": "what shares memory",
}


def _trees(what: str, found: Tree, wanted: Tree, inexact: bool) -> Iterator[Difference]:
    if is_array(wanted) and is_array(found):
        yield from _arrays(what, found, wanted, inexact)
    elif isinstance(wanted, list) and isinstance(found, list):
        yield from _sequences(what, found, wanted, inexact)
    elif isinstance(wanted, dict) and isinstance(found, dict) and not is_array(wanted) and not is_array(found):
        yield from _nodes(what, found, wanted, inexact)
    elif type(found) is not type(wanted) or found != wanted:
        yield what, _brief(found), _brief(wanted)


def _sequences(what: str, found: list[Tree], wanted: list[Tree], inexact: bool) -> Iterator[Difference]:
    if len(found) != len(wanted):
        yield f"the length of {what}", str(len(found)), str(len(wanted))
    for place, (one, other) in enumerate(zip(found, wanted, strict=False)):
        yield from _trees(f"{what}[{place}]", one, other, inexact)


def _nodes(what: str, found: Mapping[str, Tree], wanted: Mapping[str, Tree], inexact: bool) -> Iterator[Difference]:
    if found.keys() != wanted.keys():
        yield what, _brief(found), _brief(wanted)
    for key in found.keys() & wanted.keys():
        inner = what if key in ("tuple", "dict") else f"{what}.{key}"
        yield from _trees(inner, found[key], wanted[key], inexact)


def _arrays(what: str, found: Tree, wanted: Tree, inexact: bool) -> Iterator[Difference]:
    kinds = [next(kind for kind in KINDS if kind in tree) for tree in (found, wanted)]
    types = [tree[kind] for tree, kind in zip((found, wanted), kinds, strict=True)]
    if kinds[0] != kinds[1]:
        yield f"the kind of {what}", kinds[0], kinds[1]
    elif types[0] != types[1]:
        yield f"the type of {what}", types[0], types[1]
    elif found.get("grad") != wanted.get("grad"):
        yield f"that {what} is differentiable", str(found.get("grad", False)), str(wanted.get("grad", False))
    else:
        dtype, values = array_of(wanted)
        yield from _values(what, array_of(found)[1], values, TOLERANCE.get(dtype, 0.0) if inexact else 0.0)


def _values(what: str, found: NDArray[Any], wanted: NDArray[Any], tolerance: float) -> Iterator[Difference]:
    agree = np.isclose(found, wanted, tolerance, tolerance, True) if tolerance else _same_bits(found, wanted)
    off = np.argwhere(~np.asarray(agree))
    if len(off):
        index = tuple(int(place) for place in off[0])
        where = f"{what} at {list(index)}" if index else what
        yield where, str(found[index]), f"{wanted[index]}{f' within {tolerance:g}' if tolerance else ''}"


def _same_bits(found: NDArray[Any], wanted: NDArray[Any]) -> NDArray[np.bool_]:
    if wanted.dtype == object:
        return np.asarray(found == wanted, np.bool_)
    bits = np.dtype((np.void, wanted.dtype.itemsize))
    same = np.array(found, order="C").reshape(-1).view(bits) == np.array(wanted, order="C").reshape(-1).view(bits)
    return np.asarray(same, np.bool_).reshape(wanted.shape)


def _brief(tree: Tree) -> str:
    text = repr(tree)
    return text if len(text) <= 160 else f"{text[:160]}..."
