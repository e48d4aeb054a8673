"""Compares a recording with the same call of collshim's adapter, and describes each difference in one sentence.

    comm.all_gather/2d@3: outs[1] at [0, 2] is 5.0, should be 8.0 (rank 0 of 3)
    for `flow.comm.all_gather(outs, x)`

Structures, dtypes, shapes, kinds of arrays, classes of exceptions, and which arguments are mutated, replaced, returned
or share memory are compared exactly. Values are compared bit for bit, except those of reductions of inexact
dtypes, which have ``TOLERANCE``. An exception agrees if the adapter's is an instance of the recorded class.

Three kinds of recordings can be compared only in part. In an accident the framework hung or died: the adapter's rank
must answer or raise a collshim error. If the recording shows a limit of its backend, the adapter must answer. An answer
may also be a consequence of another rank's exception.
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

Difference = tuple[str, str, str]  # what differs, its actual value, its expected value

# Relative and absolute; for sums of at most four small numbers in another order.
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
    """Return one sentence for each difference on any rank."""
    size = len(answers)
    return [
        f"{recording.name}: {what} is {actual}, should be {expected} (rank {rank} of {size})\n"
        f"for `{recording.asked.call}`"
        for rank, answer in enumerate(answers)
        for what, actual, expected in differences(recording, rank, answer)
    ]


def differences(recording: Recording, rank: int, answer: Answer) -> Iterator[Difference]:
    """Yield the differences in the answer of ``rank``."""
    expected = recording.of_rank(rank)
    if "ended" in expected or "consequence" in expected:
        yield from _compare_accident(answer, expected)
    elif "limit" in expected and not recording.asked.match:
        if "raised" in answer:
            yield "the exception", _describe(answer), "none: the recording shows a limit of its backend"
    elif "raised" in expected:
        yield from _compare_refusal(answer, expected, recording.asked.match)
    elif "raised" in answer:
        yield "the exception", _describe(answer), "none"
    else:
        yield from _compare_answers(answer, expected, REDUCING.search(recording.asked.call) is not None)


def _compare_accident(answer: Answer, expected: Answer) -> Iterator[Difference]:
    if "raised" in answer and OURS not in answer["raised"]:
        yield (
            "the exception",
            _describe(answer),
            f"one of collshim's own, as the framework {expected.get('ended', 'failed')}",
        )


def _compare_refusal(answer: Answer, expected: Answer, match: str) -> Iterator[Difference]:
    recorded_class = expected["raised"][0]
    if "raised" not in answer:
        yield "the exception", "none", f"{recorded_class}: {expected['text'][:120]!r}"
    elif not _is_instance(answer["raised"], recorded_class):
        yield "the class of the exception", _describe(answer), f"{recorded_class}: {expected['text'][:120]!r}"
    elif match in expected["text"] and match not in answer["text"]:
        yield "the text of the exception", repr(answer["text"]), f"one with {match!r}"


def _is_instance(classes: list[str], recorded_class: str) -> bool:
    """Check for an exception of the recorded class; unless that is a built-in, its name alone is compared."""
    if hasattr(builtins, recorded_class):
        return recorded_class in classes
    return recorded_class.rpartition(".")[2] in {name.rpartition(".")[2] for name in classes}


def _describe(answer: Answer) -> str:
    return f"{answer['raised'][0]}: {answer['text'][:200]!r}" if "raised" in answer else "none"


def _compare_answers(answer: Answer, expected: Answer, inexact: bool) -> Iterator[Difference]:
    yield from _trees("returned", answer["returned"], expected["returned"], inexact)
    values, expected_values = answer.get("after", {}), expected.get("after", {})
    for name in sorted(values.keys() | expected_values.keys()):
        if name not in values:
            yield name, "unchanged", f"changed: {_brief(expected_values[name])}"
        elif name not in expected_values:
            yield name, f"changed: {_brief(values[name])}", "unchanged"
        else:
            yield from _trees(name, values[name], expected_values[name], inexact)
    for fact, nothing in (("replaced", []), ("same", {}), ("shared", [])):
        actual_fact, expected_fact = answer.get(fact, nothing), expected.get(fact, nothing)
        if actual_fact != expected_fact:
            yield _FACTS[fact], str(actual_fact), str(expected_fact)


_FACTS = {
    "replaced": "the list of places with a new object",
    "same": "the map of results that are an input",
    "shared": "the list of pairs that share memory",
}


def _trees(what: str, actual: Tree, expected: Tree, inexact: bool) -> Iterator[Difference]:
    if is_array(expected) and is_array(actual):
        yield from _arrays(what, actual, expected, inexact)
    elif isinstance(expected, list) and isinstance(actual, list):
        yield from _sequences(what, actual, expected, inexact)
    elif isinstance(expected, dict) and isinstance(actual, dict) and not is_array(expected) and not is_array(actual):
        yield from _nodes(what, actual, expected, inexact)
    elif type(actual) is not type(expected) or actual != expected:
        yield what, _brief(actual), _brief(expected)


def _sequences(what: str, actual: list[Tree], expected: list[Tree], inexact: bool) -> Iterator[Difference]:
    if len(actual) != len(expected):
        yield f"the length of {what}", str(len(actual)), str(len(expected))
    for place, (actual_item, expected_item) in enumerate(zip(actual, expected, strict=False)):
        yield from _trees(f"{what}[{place}]", actual_item, expected_item, inexact)


def _nodes(what: str, actual: Mapping[str, Tree], expected: Mapping[str, Tree], inexact: bool) -> Iterator[Difference]:
    if actual.keys() != expected.keys():
        yield what, _brief(actual), _brief(expected)
    for key in actual.keys() & expected.keys():
        inner = what if key in ("tuple", "dict") else f"{what}.{key}"
        yield from _trees(inner, actual[key], expected[key], inexact)


def _arrays(what: str, actual: Tree, expected: Tree, inexact: bool) -> Iterator[Difference]:
    kinds = [next(kind for kind in KINDS if kind in tree) for tree in (actual, expected)]
    types = [tree[kind] for tree, kind in zip((actual, expected), kinds, strict=True)]
    if kinds[0] != kinds[1]:
        yield f"the kind of {what}", kinds[0], kinds[1]
    elif types[0] != types[1]:
        yield f"the type of {what}", types[0], types[1]
    elif actual.get("grad") != expected.get("grad"):
        yield f"that {what} is differentiable", str(actual.get("grad", False)), str(expected.get("grad", False))
    else:
        dtype, values = array_of(expected)
        yield from _values(what, array_of(actual)[1], values, TOLERANCE.get(dtype, 0.0) if inexact else 0.0)


def _values(what: str, actual: NDArray[Any], expected: NDArray[Any], tolerance: float) -> Iterator[Difference]:
    agreement = np.isclose(actual, expected, tolerance, tolerance, True) if tolerance else _same_bits(actual, expected)
    indices = np.argwhere(~np.asarray(agreement))
    if len(indices):
        index = tuple(int(i) for i in indices[0])
        place = f"{what} at {list(index)}" if index else what
        yield place, str(actual[index]), f"{expected[index]}{f' within {tolerance:g}' if tolerance else ''}"


def _same_bits(actual: NDArray[Any], expected: NDArray[Any]) -> NDArray[np.bool_]:
    if expected.dtype == object:
        return np.asarray(actual == expected, np.bool_)
    bits = np.dtype((np.void, expected.dtype.itemsize))
    equal_bits = np.array(actual, order="C").reshape(-1).view(bits) == np.array(expected, order="C").reshape(-1).view(
        bits
    )
    return np.asarray(equal_bits, np.bool_).reshape(expected.shape)


def _brief(tree: Tree) -> str:
    text = repr(tree)
    return text if len(text) <= 160 else f"{text[:160]}..."
