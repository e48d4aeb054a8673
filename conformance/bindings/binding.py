"""A binding: one spelling of one collective, and how to read its answer.

A binding serves both the real framework and collshim's adapter: a ``RankContext`` finds functions by import path under
a prefix, "" for the framework and "collshim." for the adapter. This folder imports only the standard library and
NumPy.
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
    """The parts that a framework's bindings share.

    Attributes:
        name: the name of the package.
        enter: prepares a rank, once; most frameworks have a function that must be called first.
        group: returns a case's group in the framework's terms; every rank of the world calls it, because some
            frameworks require that.
        differentiate: computes a loss and its gradients; see ``differentiation.by_backward``.
        op: returns a reduction in the framework's terms.
        needs: the functions that ``enter``, ``group`` and reductions call; every case needs them.
    """

    name: str
    enter: Callable[[RankContext], object]
    group: Callable[[RankContext, Any], Any]
    differentiate: Callable[..., Tree] = by_backward
    op: Callable[[RankContext, str], Any] = lambda context, name: name
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A case that the framework refuses on every rank: changes to the default case, and the exception."""

    changes: Mapping[str, Any]
    error: str
    match: str = ""
    least_size: int = 1  # of the world; some frameworks do not check the arguments of a single rank


@dataclass(frozen=True, kw_only=True)
class Binding(ABC):
    """One spelling of one collective.

    Attributes:
        framework: the framework that the spelling belongs to.
        path: dotted path of the function, beginning with the framework's name.
        collective: the name of the collective, as in ``Case``.
        result: where the result is: "returned", or a parameter's name.
        form: distinguishes the spellings of one function.
        options: keyword arguments of every call.
        admits: the limits of the cases.
        refused: the cases that the framework refuses, one for each reason.
        flushes: why a result may hold zero instead of a subnormal number; empty if it may not.
        alone: why this call does not match a peer's in another dialect; empty if it does.
        example: the code on the collective's page, if this spelling represents its framework there: statements, and an
            expression at the end; see ``conventions.starts``.
        notes: advice on that page for users who leave the framework or move to it.
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
        """The path, followed by the form in brackets if there is one."""
        return f"{self.path}[{self.form}]" if self.form else self.path

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the binding for hypothesis."""
        printer.text(self.name)

    def supports(self, case: Any) -> bool:
        """Return whether the real framework admits ``case``."""
        return case.collective == self.collective and self.admits.case(case)

    def answer(self, context: RankContext, case: Any) -> Answer:
        """Make the call on this rank and read its result; every rank of the world runs this."""
        context.once(("entered", self.framework.name), lambda: self.framework.enter(context))
        group = self.framework.group(context, case)
        if context.rank not in case.ranks:
            return OUTSIDE
        given = self.call(context, case, group)
        return replace(given, returned=seen(given.returned), arguments=seen(dict(given.arguments)))

    def refusal(self, case: Any) -> Refusal | None:
        """Return the expected exception of a refused case; None for any other."""
        if self.supports(case):
            return None
        for refused in self.refused:
            changed = all(getattr(case, name) == value for name, value in refused.changes.items())
            if changed and case.size >= refused.least_size:
                return Refusal(refused.error, refused.match)
        return None

    def held(self, answer: Answer) -> Tree:
        """Return the result in an answer, in the form and place that this spelling uses."""
        return answer.returned if self.result == "returned" else answer.arguments[self.result]

    @abstractmethod
    def call(self, context: RankContext, case: Any, group: Any) -> Answer:
        """Make the arguments, call the function, and return what the rank then holds; only on ranks of the group."""

    @abstractmethod
    def expected(self, case: Any, rank: int, reference: Any) -> Answer:
        """Return the answer expected from rank ``rank`` of the group, by the functions of ``reference``."""


def refuses(fault: str, error: str, match: str = "") -> Refused:
    """Return the refusal of calls with a fault."""
    return Refused(changes={"fault": fault}, error=error, match=match)


def own(context: RankContext, case: Any) -> Any:
    """Return this rank's array, of the case's kind and layout."""
    return made(case, case.array_of(place_in(case, context)))


def place_in(case: Any, context: RankContext) -> int:
    """Return the rank of ``context`` in the case's group."""
    rank: int = case.ranks.index(context.rank)
    return rank


def made(case: Any, values: NDArray[Any]) -> Any:
    """Convert ``values`` to an array of the case's kind."""
    return KINDS[case.kind].make(values)


def with_arrays(case: Any, tree: Tree) -> Tree:
    """Convert NumPy's arrays in ``tree`` to arrays of the case's kind."""
    if isinstance(tree, dict):
        return {key: with_arrays(case, value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)(with_arrays(case, item) for item in tree)
    return made(case, tree) if isinstance(tree, np.ndarray) else tree


def blank(case: Any, shape: Sequence[int]) -> Any:
    """Return an array to write into, full of values that no answer has by chance."""
    return made(case, blank_values(case, shape))


def blank_values(case: Any, shape: Sequence[int]) -> NDArray[Any]:
    """Return the values of ``blank``."""
    return full(shape, case.dtype == "bool" or 99, case.dtype)


def address(array: Any, case: Any) -> int:
    """Return the address of ``array`` in memory."""
    return KINDS[case.kind].address(array)
