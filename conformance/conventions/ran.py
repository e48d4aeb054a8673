"""Every available spelling, run on ranks that are threads; the answers are compared and the calls recorded."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import collshim
from collshim.conformance.bindings import bindings
from collshim.conformance.bindings.binding import Binding
from collshim.conformance.cases import ROOTED, Case
from collshim.conformance.comparison import differences, sentence
from collshim.conformance.conventions.called import PREFIX, Notes, Noting, watched
from collshim.conformance.conventions.shapes import LETTERS, case
from collshim.conformance.missing import is_missing
from collshim.conformance.values import REDUCTIONS

SECONDS = 60.0  # for all spellings on all ranks


def plain(binding: Binding) -> Case:
    """Return the case that facts are read from: the simplest one that the spelling admits."""
    return case(binding.collective, binding.admits.reduce_ops[0])


def telling(binding: Binding) -> Case:
    """Return the case in which the call shows the most: no argument has its default value."""
    admits, asked = binding.admits, plain(binding)
    if admits.axes or admits.split_axes:
        asked = replace(asked, axis=int(admits.axes), split_axis=int(admits.split_axes))
    if binding.collective in REDUCTIONS and "max" in admits.reduce_ops:
        asked = replace(asked, reduce_op="max")
    return replace(asked, root=1) if binding.collective in ROOTED and admits.roots else asked


@cache
def calls() -> dict[str, Notes]:
    """Return how every available spelling makes its call, by the binding's name.

    Raises:
        AssertionError: an adapter does not do what its binding says.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecated names are described too
        by_rank = collshim.launch(_run_every, LETTERS["n"], timeout=SECONDS)
    wrong = [line for found, _ in by_rank for line in found]
    if wrong:
        raise AssertionError("\n".join(wrong))
    return {binding.name: by_rank[telling(binding).root][1][binding.name] for binding in _available()}


def _run_every() -> tuple[list[str], dict[str, Notes]]:
    """Run every spelling on one rank; return the differences from the expected answers, and the calls."""
    wrong, notes, memory = list[str](), dict[str, Notes](), dict[Any, Any]()
    for binding in _available():
        for asked in (plain(binding), telling(binding)):
            place = _place(binding, memory)
            wrong += _compare(binding, asked, place)
            notes[binding.name] = place.notes
    return wrong, notes


def _available() -> list[Binding]:
    return [one for one in bindings() if "async" not in one.form and not is_missing(PREFIX + one.path)]


def _place(binding: Binding, memory: dict[Any, Any]) -> Noting:
    here = collshim.current()
    return Noting(here.rank, here.size, PREFIX, memory=memory, watched=watched(binding))


def _compare(binding: Binding, asked: Case, place: Noting) -> Iterator[str]:
    answer = binding.answer(place, asked)
    return (sentence(binding, asked, place.rank, one) for one in differences(binding, asked, place.rank, answer))
