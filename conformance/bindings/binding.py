"""What a binding is: one spelling of one collective, and how its answer is read.

A binding serves the real framework and collshim's adapter alike: a ``RankContext`` finds functions by import path
under a prefix, "" for the framework and "collshim." for the adapter. This folder imports the standard library
and NumPy only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collshim.conformance.bindings.admits import Admits
from collshim.conformance.bindings.answers import OUTSIDE, Answer, Refusal, Tree, seen
from collshim.conformance.bindings.differentiation import by_backward
from collshim.conformance.bindings.kinds import KINDS
from collshim.conformance.bindings.rank_context import RankContext
from collshim.conformance.dtypes import full


@dataclass(frozen=True)
class Framework:
    """What is common to a framework's bindings.

    Attributes:
        name: its package.
        enter: makes a rank ready, once; most frameworks have a function that must be called first.
        group: the group of a case in the framework's terms; called on every rank of the world, as some demand it.
        differentiate: computes a loss and its gradients, see ``differentiation.by_backward``.
        op: a reduction in the framework's terms.
        needs: the functions that ``enter`` and ``group`` call, and operations that are said: no case goes without them.
    """

    name: str
    enter: Callable[[RankContext], object]
    group: Callable[[RankContext, Any], Any]
    differentiate: Callable[..., Tree] = by_backward
    op: Callable[[RankContext, str], Any] = lambda context, name: name
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A case that the framework refuses on every rank: changes to the default case, and what is raised."""

    changes: Mapping[str, Any]
    error: str
    match: str = ""
    least_size: int = 1  # of the world; some frameworks do not look at what a lone rank gives


@dataclass(frozen=True, kw_only=True)
class Binding(ABC):
    """One spelling of one collective.

    Attributes:
        framework: whose spelling it is.
        path: dotted path of the function, from the framework's name on.
        collective: its name, as in ``Case``.
        result: where the result lies: "returned", or a parameter's name.
        form: tells apart the spellings of one function.
        options: keyword arguments of every call.
        admits: the limits of what is asked.
        refused: what the framework refuses, one case for each reason.
        flushes: why zero may stand in a result for a subnormal number; empty where it may not.
        alone: why a peer that speaks another dialect does not meet this call; empty where it does.
        example: what the page of its collective shows, where this spelling stands there for its framework: statements,
            and an expression at the end, see ``conventions.starts``.
        notes: what is said there for who leaves the framework or comes to it.
    """

    framework: Framework
    path: str
    collective: str
    result: str = "returned"
    form: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    admits: Admits
    refused: tuple[Refused, ...] = ()
    flushes: str = ""
    alone: str = ""
    example: str = ""
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The path, and the form in brackets where there is one."""
        return f"{self.path}[{self.form}]" if self.form else self.path

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """How hypothesis prints it."""
        printer.text(self.name)

    def supports(self, case: Any) -> bool:
        """Whether the real framework admits ``case``."""
        return case.collective == self.collective and self.admits.case(case)

    def answer(self, context: RankContext, case: Any) -> Answer:
        """What the rank at ``place`` holds after the call, read; every rank of the world runs this."""
        context.once(("entered", self.framework.name), lambda: self.framework.enter(context))
        group = self.framework.group(context, case)
        if context.rank not in case.ranks:
            return OUTSIDE
        given = self.call(context, case, group)
        return replace(given, returned=seen(given.returned), arguments=seen(dict(given.arguments)))

    def refusal(self, case: Any) -> Refusal | None:
        """What should be raised for a refused case; None for any other."""
        if self.supports(case):
            return None
        for refused in self.refused:
            changed = all(getattr(case, name) == value for name, value in refused.changes.items())
            if changed and case.size >= refused.least_size:
                return Refusal(refused.error, refused.match)
        return None

    def held(self, answer: Answer) -> Tree:
        """The result in an answer: where this spelling leaves it, with what it is wrapped in."""
        return answer.returned if self.result == "returned" else answer.arguments[self.result]

    @abstractmethod
    def call(self, context: RankContext, case: Any, group: Any) -> Answer:
        """Make the arguments, call the function, and return what is held then; on ranks of the group only."""

    @abstractmethod
    def expected(self, case: Any, rank: int, reference: Any) -> Answer:
        """What rank ``rank`` of the group should hold, by the functions of ``reference``."""


def refuses(fault: str, error: str, match: str = "") -> Refused:
    """The refusal of calls with a fault."""
    return Refused(changes={"fault": fault}, error=error, match=match)


def own(context: RankContext, case: Any) -> Any:
    """This rank's array, of the case's kind and layout."""
    return made(case, case.array_of(place_in(case, context)))


def place_in(case: Any, context: RankContext) -> int:
    """The rank that this place has in the case's group."""
    rank: int = case.ranks.index(context.rank)
    return rank


def made(case: Any, values: NDArray[Any]) -> Any:
    """``values`` as an array of the case's kind."""
    return KINDS[case.kind].make(values)


def with_arrays(case: Any, tree: Tree) -> Tree:
    """``tree`` with NumPy's arrays exchanged for arrays of the case's kind."""
    if isinstance(tree, dict):
        return {key: with_arrays(case, value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)(with_arrays(case, item) for item in tree)
    return made(case, tree) if isinstance(tree, np.ndarray) else tree


def blank(case: Any, shape: Sequence[int]) -> Any:
    """An array to write into, full of values that no answer has by chance."""
    return made(case, blank_values(case, shape))


def blank_values(case: Any, shape: Sequence[int]) -> NDArray[Any]:
    """What ``blank`` is full of."""
    return full(shape, case.dtype == "bool" or 99, case.dtype)


def address(array: Any, case: Any) -> int:
    """Where ``array`` lies in memory."""
    return KINDS[case.kind].address(array)
