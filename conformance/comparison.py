"""Compares an answer with the expected one, and describes each difference in one sentence.

    all_gather through oneflow.comm.all_gather: tensor_list[1] at [0, 2] is 5.0, should be 8.0 (rank 0 of 2)
    for Case('all_gather', shape=(1, 3))

Values are compared bit for bit, or within ``Case.tolerance``. Structure, kinds of array, shapes, dtypes, identity and
shared memory are always compared exactly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from collshim.conformance import reference
from collshim.conformance.bindings.answers import (
    OUTSIDE,
    Answer,
    Failure,
    Handle,
    Opaque,
    Refusal,
    Seen,
    Shaped,
    Tree,
)
from collshim.conformance.bindings.binding import Binding
from collshim.conformance.cases import Case
from collshim.conformance.dtypes import computable, name_of

_LONG = 1e16  # larger whole numbers are shown with an exponent
_EXCERPT = 3  # the numbers of a differing array that are shown

Difference = tuple[str, str, str]  # what differs, its actual value, its expected value


class Terms(NamedTuple):
    """How values are compared.

    Attributes:
        kind: the kind of the arrays.
        tolerance: see ``Case.tolerance``.
        flushes: whether a zero also agrees with a subnormal number.
    """

    kind: str
    tolerance: float
    flushes: bool


class DifferenceError(AssertionError):
    """An answer differs from the expected one; the text has one line for each difference."""


def check(bindings: Sequence[Binding], case: Case, answers: Sequence[Answer | Failure]) -> None:
    """Compare the answer of each rank of the world with the one that its binding expects.

    Raises:
        DifferenceError: an answer differs.
    """
    lines = [
        sentence(binding, case, rank, difference)
        for rank, (binding, answer) in enumerate(zip(bindings, answers, strict=True))
        for difference in differences(binding, case, rank, answer)
    ]
    lines += [sentence(bindings[rank], case, rank, difference) for rank, difference in left_too_early(case, answers)]
    if lines:
        raise DifferenceError("\n".join(lines + [answer.trace for answer in answers if isinstance(answer, Failure)]))


def sentence(binding: Binding, case: Case, rank: int, difference: Difference) -> str:
    """Return the line that reports a difference."""
    what, actual, expected = difference
    place = f"(rank {rank} of {case.size}) for {case}"
    return f"{case.collective} through {binding.name}: {what} is {actual}, should be {expected} {place}"


def differences(
    binding: Binding, case: Case, rank: int, answer: Answer | Failure, *, texts: bool = True
) -> Iterator[Difference]:
    """Yield the differences in world rank ``rank``'s answer; exceptions compare by class, and by text if ``texts``."""
    refusal = binding.refusal(case)
    if refusal is not None:
        yield from _compare_refusal(answer, refusal, texts)
    elif isinstance(answer, Failure):
        yield "the exception", f"{answer.classes[0]}: {answer.message}", "none"
    elif rank in case.ranks:
        terms = Terms(case.kind, case.tolerance, bool(binding.flushes))
        yield from _compare_answers(answer, binding.expected(case, case.ranks.index(rank), reference), terms)
    elif answer != OUTSIDE:
        yield "the answer of a rank outside the group", repr(answer), repr(OUTSIDE)


def left_too_early(case: Case, answers: Sequence[Answer | Failure]) -> Iterator[tuple[int, Difference]]:
    """Yield each rank that left a barrier before the last rank arrived, with the difference."""
    stays = {rank: answer.stay for rank, answer in enumerate(answers) if isinstance(answer, Answer)}
    stays_in_group = {rank: stays[rank] for rank in case.ranks if stays.get(rank) is not None}
    last, arrival = max(
        ((rank, stay[0]) for rank, stay in stays_in_group.items() if stay), key=lambda one: one[1], default=(0, 0.0)
    )
    for rank, stay in stays_in_group.items():
        if stay is not None and stay[1] < arrival:
            yield rank, ("leaving", f"before rank {last} arrived", "after every rank arrived")


def _compare_refusal(answer: Answer | Failure, refusal: Refusal, texts: bool) -> Iterator[Difference]:
    if isinstance(answer, Answer):
        yield "the exception", "none", refusal.error
    elif refusal.error not in answer.classes:
        yield "the class of the exception", answer.classes[0], refusal.error
    elif texts and not re.search(refusal.match, answer.message):
        yield "the text of the exception", repr(answer.message), f"one that matches {refusal.match!r}"


def _compare_answers(answer: Answer, expected: Answer, terms: Terms) -> Iterator[Difference]:
    yield from _trees("returned", answer.returned, expected.returned, terms)
    yield from _names("arguments", answer.arguments, expected.arguments)
    for name in filter(answer.arguments.__contains__, expected.arguments):
        yield from _trees(name, answer.arguments[name], expected.arguments[name], terms)
    for fact, holds in expected.facts.items():
        if answer.facts.get(fact) is not holds:
            yield f"that {fact}", str(answer.facts.get(fact)), str(holds)


def _names(what: str, actual: Any, expected: Any) -> Iterator[Difference]:
    if set(actual) != set(expected):
        yield f"the names in {what}", str(sorted(actual)), str(sorted(expected))


def _trees(what: str, actual: Tree, expected: Tree, terms: Terms) -> Iterator[Difference]:
    if isinstance(expected, np.ndarray | np.generic):
        yield from _arrays(what, actual, np.asarray(expected), terms)
    elif isinstance(expected, Shaped):
        yield from _shapes(what, actual, expected, terms)
    elif type(actual) is not type(expected):
        yield what, _brief(actual), _brief(expected)
    elif isinstance(expected, Handle):
        yield from _trees(f"{what}'s wait()", actual.waited, expected.waited, terms)
    elif isinstance(expected, dict):
        yield from _names(what, actual, expected)
        for key in filter(actual.__contains__, expected):
            yield from _trees(f"{what}[{key!r}]", actual[key], expected[key], terms)
    elif isinstance(expected, list | tuple):
        yield from _sequences(what, actual, expected, terms)
    elif repr(actual) != repr(expected):  # repr distinguishes -0.0 from 0.0
        yield what, _brief(actual), _brief(expected)


def _sequences(what: str, actual: Sequence[Tree], expected: Sequence[Tree], terms: Terms) -> Iterator[Difference]:
    if len(actual) != len(expected):
        yield f"the length of {what}", str(len(actual)), str(len(expected))
    for place, (actual_item, expected_item) in enumerate(zip(actual, expected, strict=False)):
        yield from _trees(f"{what}[{place}]", actual_item, expected_item, terms)


def _arrays(what: str, actual: Tree, expected: NDArray[Any], terms: Terms) -> Iterator[Difference]:
    shape_differences = list(_shapes(what, actual, Shaped(expected.shape, name_of(expected.dtype)), terms))
    yield from shape_differences
    if not shape_differences and actual.values.tobytes() != expected.tobytes():
        yield from _values(what, actual.values, expected, terms)


def _shapes(what: str, actual: Tree, expected: Shaped, terms: Terms) -> Iterator[Difference]:
    if not isinstance(actual, Seen):
        yield what, _brief(actual), _brief(expected)
    elif actual.kind != terms.kind:
        yield f"the kind of {what}", actual.kind, terms.kind
    elif name_of(actual.values.dtype) != expected.dtype:
        yield f"the dtype of {what}", name_of(actual.values.dtype), expected.dtype
    elif actual.values.shape != expected.shape:
        yield f"the shape of {what}", str(actual.values.shape), str(expected.shape)


def _values(what: str, actual: NDArray[Any], expected: NDArray[Any], terms: Terms) -> Iterator[Difference]:
    indices = np.argwhere(~_agree(actual, expected, terms))
    if len(indices):
        index = tuple(int(i) for i in indices[0])
        place = f"{what} at {list(index)}" if index else what
        suffix = f" within {terms.tolerance:g}" if terms.tolerance else ""
        more = f": expected {_excerpt(expected, index)}, got {_excerpt(actual, index)}"
        yield place, _number(computable(actual)[index]), f"{_number(computable(expected)[index])}{suffix}{more}"


def _excerpt(array: NDArray[Any], index: tuple[int, ...]) -> str:
    """Return the dtype and up to three numbers of the array, in order, beginning at the index."""
    numbers = computable(array).ravel()
    first = int(np.ravel_multi_index(index, array.shape)) if index else 0
    shown = [*["..."] * (first > 0), *map(_number, numbers[first : first + _EXCERPT])]
    shown += ["..."] * (first + _EXCERPT < len(numbers))
    text = f"[{', '.join(shown)}]" if index else shown[0]
    return f"{text} {name_of(array.dtype)}"


def _number(value: Any) -> str:
    """Return the number as text: all digits of a whole number, and otherwise the shortest text that its dtype needs."""
    is_whole = isinstance(value, np.floating) and value == np.trunc(value) and abs(float(value)) < _LONG
    return str(float(value)) if is_whole else str(value)


def _agree(actual: NDArray[Any], expected: NDArray[Any], terms: Terms) -> NDArray[np.bool_]:
    numbers, wanted = computable(actual), computable(expected)
    if terms.tolerance:
        return np.asarray(np.isclose(numbers, wanted, rtol=terms.tolerance, atol=terms.tolerance))
    bits = np.dtype((np.void, expected.dtype.itemsize))
    equal_bits = np.asarray(actual.reshape(-1).view(bits) == expected.reshape(-1).view(bits), dtype=np.bool_)
    agree = equal_bits.reshape(expected.shape)
    if terms.flushes and np.issubdtype(wanted.dtype, np.floating):
        subnormal = (wanted != 0) & (abs(wanted) < np.finfo(wanted.dtype).smallest_normal)
        return np.asarray(agree | ((numbers == 0) & subnormal), dtype=np.bool_)
    return agree


def _brief(tree: Tree) -> str:
    """Describe a tree without its values."""
    if isinstance(tree, Seen):
        return f"a {tree.kind} array of shape {tree.values.shape} and dtype {name_of(tree.values.dtype)}"
    if isinstance(tree, np.ndarray):
        return f"an array of shape {tree.shape} and dtype {name_of(tree.dtype)}"
    if isinstance(tree, Shaped):
        return f"an array of shape {tree.shape} and dtype {tree.dtype}"
    if isinstance(tree, Handle):
        return "a handle"
    if isinstance(tree, Opaque):
        return f"a {tree.type}"
    if isinstance(tree, list | tuple | dict):
        return f"a {type(tree).__name__} of {len(tree)}"
    return repr(tree)
