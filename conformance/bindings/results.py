"""Spellings that return what they made and leave their input alone: MindSpore, MegEngine, TensorFlow."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from collshim.conformance.bindings.answers import Answer, Tree, leaves, waited
from collshim.conformance.bindings.binding import Binding, made, own, own_parts, place_in
from collshim.conformance.bindings.differentiation import Rule, Weighing, expected_gradient, weights_of
from collshim.conformance.bindings.invalid import invalidated
from collshim.conformance.bindings.joined_outputs import joined_input
from collshim.conformance.bindings.rank_context import RankContext


class Asked(NamedTuple):
    """What a call is made from; ``group`` is in the framework's terms, ``given`` this rank's input."""

    function: Any
    case: Any
    group: Any
    given: Any
    rank: int
    place: RankContext


def _as_it_is(value: Tree) -> Tree:
    return value


@dataclass(frozen=True, kw_only=True)
class Returns(Binding):
    """A call that returns its result.

    Attributes:
        speak: makes the call; gets ``options`` too.
        wrap: from the value to what is returned, for those that return more than the value.
        rule: what the gradient is, of calls that admit one.
        elsewhere: what a rank finds whose input is not looked at.
    """

    speak: Callable[..., Tree]
    wrap: Callable[[Tree], Tree] = _as_it_is
    rule: Rule = "sum"
    elsewhere: Literal["none", "zeros"] = "none"

    def call(self, context: RankContext, case: Any, group: Any) -> Answer:
        """Call the function, and wait for the handle that it may return."""
        given, function = self.given(context, case), context.function(self.path)
        (argument,) = invalidated(case.fault, (given,))
        asked = Asked(function, case, group, argument, place_in(case, context), context)
        if not case.gradient:
            return Answer(waited(self.speak(asked, **self.options)), {"input": given})
        returned = self._differentiated(asked)
        return Answer(returned, {"input": given, "the gradient of input": _gradients_of(given)})

    def expected(self, case: Any, rank: int, reference: Any) -> Answer:
        """The value as this spelling wraps it, and the input unchanged."""
        arguments = {"input": self.source(case, rank)}
        if case.gradient:
            gradient = expected_gradient(case, rank, self.rule, self.elsewhere, self.source)
            arguments["the gradient of input"] = gradient
        return Answer(self.wrap(self.value(case, rank, reference)), arguments)

    @abstractmethod
    def given(self, context: RankContext, case: Any) -> Tree:
        """This rank's input."""

    @abstractmethod
    def source(self, case: Any, rank: int) -> Tree:
        """The input of a rank of the group, in NumPy's terms."""

    @abstractmethod
    def value(self, case: Any, rank: int, reference: Any) -> Tree:
        """What a rank of the group should get."""

    def _differentiated(self, asked: Asked) -> Tree:
        """What the call returned, after a backward through it."""
        inputs = [leaf for leaf in leaves(asked.given) if leaf is not None]
        return self.framework.differentiate(
            asked.place,
            inputs,
            lambda: waited(self.speak(asked, **self.options)),
            lambda: weights_of(self.wrap(self.value(asked.case, asked.rank, Weighing()))),
        )


def _gradients_of(given: Tree) -> Tree:
    if isinstance(given, list):
        return [_gradients_of(array) for array in given]
    return None if given is None else given.grad


@dataclass(frozen=True, kw_only=True)
class OfOneArray(Returns):
    """A call whose input is one array, the same on the way in as in the case."""

    def given(self, context: RankContext, case: Any) -> Tree:
        """This rank's array."""
        return own(context, case)

    def source(self, case: Any, rank: int) -> Tree:
        """The rank's array."""
        return case.arrays()[rank]


@dataclass(frozen=True, kw_only=True)
class OfParts(Returns):
    """A call whose input is a list of one array per rank."""

    def given(self, context: RankContext, case: Any) -> Tree:
        """This rank's arrays."""
        return own_parts(context, case)

    def source(self, case: Any, rank: int) -> Tree:
        """The rank's arrays."""
        return case.parts()[rank]


@dataclass(frozen=True, kw_only=True)
class OfJoined(Returns):
    """A call whose input is one array that is cut along ``split_axis``."""

    def given(self, context: RankContext, case: Any) -> Tree:
        """This rank's pieces, end to end along the axis that they are cut along."""
        return made(case, self.source(case, place_in(case, context)))

    def source(self, case: Any, rank: int) -> Tree:
        """The rank's pieces, end to end along the axis that they are cut along."""
        return case.laid_out(np.concatenate(case.parts()[rank], axis=case.split_axis))


@dataclass(frozen=True, kw_only=True)
class AllGatherJoined(OfOneArray):
    """All ranks' arrays end to end along ``axis``."""

    collective: ClassVar[str] = "all_gather"

    def value(self, case: Any, rank: int, reference: Any) -> Tree:
        """One array."""
        return reference.concatenated(reference.all_gather(case.arrays())[rank], case.axis)


@dataclass(frozen=True, kw_only=True)
class AllGatherParts(OfOneArray):
    """All ranks' arrays, one by one."""

    collective: ClassVar[str] = "all_gather"

    def value(self, case: Any, rank: int, reference: Any) -> Tree:
        """A list; a spelling that returns a tuple wraps it."""
        return reference.all_gather(case.arrays())[rank]


@dataclass(frozen=True, kw_only=True)
class AllReduced(OfOneArray):
    """The reduction of all ranks' arrays."""

    collective: ClassVar[str] = "all_reduce"

    def value(self, case: Any, rank: int, reference: Any) -> Tree:
        """One array."""
        return reference.all_reduce(case.arrays(), case.reduce_op)[rank]


@dataclass(frozen=True, kw_only=True)
class AllToAllParts(OfParts):
    """One array from every rank, for a list with one array for every rank."""

    collective: ClassVar[str] = "all_to_all"

    def value(self, case: Any, rank: int, reference: Any) -> Tree:
        """A list; a spelling that returns a tuple wraps it."""
        return reference.all_to_all(case.parts())[rank]


@dataclass(frozen=True, kw_only=True)
class AllToAllJoined(Returns):
    """The pieces from every rank end to end along axis 0, for an array cut along axis 0."""

    collective: ClassVar[str] = "all_to_all"

    def given(self, context: RankContext, case: Any) -> Tree:
        """This rank's pieces, end to end."""
        return made(case, self.source(case, place_in(case, context)))

    def source(self, case: Any, rank: int) -> Tree:
        """The rank's pieces, end to end."""
        return joined_input(case, rank)

    def value(self, case: Any, rank: int, reference: Any) -> Tree:
        """One array."""
        return reference.concatenated(reference.all_to_all(case.parts())[rank])


@dataclass(frozen=True, kw_only=True)
class AllToAllAxes(OfJoined):
    """The pieces from every rank end to end along ``axis``, for an array cut along ``split_axis``."""

    collective: ClassVar[str] = "all_to_all"

    def value(self, case: Any, rank: int, reference: Any) -> Tree:
        """One array."""
        return reference.concatenated(reference.all_to_all(case.parts())[rank], case.axis)
