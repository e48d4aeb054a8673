"""An answer beside what is expected: what differs, in one sentence each.

    all_gather through oneflow.comm.all_gather: tensor_list[1] at [0, 2] is 5.0, should be 8.0 (rank 0 of 2)
    for Case('all_gather', shape=(1, 3))

The values are compared bit for bit, or within ``Case.tolerance``; the structure, the kinds of array, their
shapes and dtypes, and the facts of identity and memory always exactly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

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

Difference = tuple[str, str, str]  # what, what it is, what it should be


class DifferenceError(AssertionError):
    """Answers differ from what is expected; the text has one line for each difference."""


def check(bindings: Sequence[Binding], case: Case, answers: Sequence[Answer | Failure]) -> None:
    """Compare the answers of all ranks of the world, each with what its binding expects.

    Raises:
        DifferenceError: some differ.
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
    """The line that reports a difference."""
    what, found, wanted = difference
    where = f"(rank {rank} of {case.size}) for {case}"
    return f"{case.collective} through {binding.name}: {what} is {found}, should be {wanted} {where}"


def differences(binding: Binding, case: Case, rank: int, answer: Answer | Failure) -> Iterator[Difference]:
    """What differs in the answer of ``rank``, a rank of the world."""
    refusal = binding.refusal(case)
    if refusal is not None:
        yield from _refused(answer, refusal)
    elif isinstance(answer, Failure):
        yield "the exception", f"{answer.classes[0]}: {answer.message}", "none"
    elif rank in case.ranks:
        yield from _answered(answer, binding.expected(case, case.ranks.index(rank), reference), case)
    elif answer != OUTSIDE:
        yield "the answer of a rank outside the group", repr(answer), repr(OUTSIDE)


def left_too_early(case: Case, answers: Sequence[Answer | Failure]) -> Iterator[tuple[int, Difference]]:
    """Which ranks left a barrier before the last one had come."""
    stays = {rank: answer.stay for rank, answer in enumerate(answers) if isinstance(answer, Answer)}
    there = {rank: stays[rank] for rank in case.ranks if stays.get(rank) is not None}
    last, came = max(
        ((rank, stay[0]) for rank, stay in there.items() if stay), key=lambda one: one[1], default=(0, 0.0)
    )
    for rank, stay in there.items():
        if stay is not None and stay[1] < came:
            yield rank, ("leaving", f"before rank {last} had come", "after every rank has come")


def _refused(answer: Answer | Failure, refusal: Refusal) -> Iterator[Difference]:
    if isinstance(answer, Answer):
        yield "the exception", "none", refusal.error
    elif refusal.error not in answer.classes:
        yield "the class of the exception", answer.classes[0], refusal.error
    elif not re.search(refusal.match, answer.message):
        yield "the text of the exception", repr(answer.message), f"one that matches {refusal.match!r}"


def _answered(answer: Answer, expected: Answer, case: Case) -> Iterator[Difference]:
    yield from _trees("returned", answer.returned, expected.returned, case)
    yield from _names("arguments", answer.arguments, expected.arguments)
    for name in filter(answer.arguments.__contains__, expected.arguments):
        yield from _trees(name, answer.arguments[name], expected.arguments[name], case)
    for fact, holds in expected.facts.items():
        if answer.facts.get(fact) is not holds:
            yield f"that {fact}", str(answer.facts.get(fact)), str(holds)


def _names(what: str, found: Any, wanted: Any) -> Iterator[Difference]:
    if set(found) != set(wanted):
        yield f"the names in {what}", str(sorted(found)), str(sorted(wanted))


def _trees(what: str, found: Tree, wanted: Tree, case: Case) -> Iterator[Difference]:
    if isinstance(wanted, np.ndarray | np.generic):
        yield from _arrays(what, found, np.asarray(wanted), case)
    elif isinstance(wanted, Shaped):
        yield from _shapes(what, found, wanted, case)
    elif type(found) is not type(wanted):
        yield what, _brief(found), _brief(wanted)
    elif isinstance(wanted, Handle):
        yield from _trees(f"{what}'s wait()", found.waited, wanted.waited, case)
    elif isinstance(wanted, dict):
        yield from _names(what, found, wanted)
        for key in filter(found.__contains__, wanted):
            yield from _trees(f"{what}[{key!r}]", found[key], wanted[key], case)
    elif isinstance(wanted, list | tuple):
        yield from _sequences(what, found, wanted, case)
    elif found != wanted:
        yield what, _brief(found), _brief(wanted)


def _sequences(what: str, found: Sequence[Tree], wanted: Sequence[Tree], case: Case) -> Iterator[Difference]:
    if len(found) != len(wanted):
        yield f"the length of {what}", str(len(found)), str(len(wanted))
    for place, (one, other) in enumerate(zip(found, wanted, strict=False)):
        yield from _trees(f"{what}[{place}]", one, other, case)


def _arrays(what: str, found: Tree, wanted: NDArray[Any], case: Case) -> Iterator[Difference]:
    shape = Shaped(wanted.shape, str(wanted.dtype))
    different = list(_shapes(what, found, shape, case))
    yield from different
    if not different:
        yield from _values(what, found.values, wanted, case.tolerance)


def _shapes(what: str, found: Tree, wanted: Shaped, case: Case) -> Iterator[Difference]:
    if not isinstance(found, Seen):
        yield what, _brief(found), _brief(wanted)
    elif found.kind != case.kind:
        yield f"the kind of {what}", found.kind, case.kind
    elif str(found.values.dtype) != wanted.dtype:
        yield f"the dtype of {what}", str(found.values.dtype), wanted.dtype
    elif found.values.shape != wanted.shape:
        yield f"the shape of {what}", str(found.values.shape), str(wanted.shape)


def _values(what: str, found: NDArray[Any], wanted: NDArray[Any], tolerance: float) -> Iterator[Difference]:
    off = np.argwhere(~_agree(found, wanted, tolerance))
    if len(off):
        index = tuple(int(i) for i in off[0])
        where = f"{what} at {list(index)}" if index else what
        within = f" within {tolerance:g}" if tolerance else ""
        yield where, str(found[index]), f"{wanted[index]}{within}"


def _agree(found: NDArray[Any], wanted: NDArray[Any], tolerance: float) -> NDArray[np.bool_]:
    if tolerance:
        return np.asarray(np.isclose(found, wanted, rtol=tolerance, atol=tolerance))
    bits = np.dtype((np.void, wanted.dtype.itemsize))
    same = np.asarray(found.reshape(-1).view(bits) == wanted.reshape(-1).view(bits), dtype=np.bool_)
    return same.reshape(wanted.shape)


def _brief(tree: Tree) -> str:
    """A tree without its values."""
    if isinstance(tree, Seen):
        return f"a {tree.kind} array of shape {tree.values.shape} and dtype {tree.values.dtype}"
    if isinstance(tree, np.ndarray | Shaped):
        return f"an array of shape {tree.shape} and dtype {tree.dtype}"
    if isinstance(tree, Handle):
        return "a handle"
    if isinstance(tree, Opaque):
        return f"a {tree.type}"
    if isinstance(tree, list | tuple):
        return f"a {type(tree).__name__} of {len(tree)}"
    return repr(tree)
