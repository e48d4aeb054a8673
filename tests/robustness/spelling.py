"""One function, its arguments, and the result of a valid call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from collshim.conformance.bindings.rank_context import resolve
from collshim.world import World
from tests.robustness.context import RankContext

Arguments = dict[str, Any]
Call = Callable[[RankContext, Arguments], Any]


@dataclass(frozen=True)
class Spelling:
    """A function of one surface.

    Attributes:
        path: its dotted path after ``collshim.``; with ``call``, a name for people.
        roles: the role of each argument, a key of ``faults.ROLES``; after "@" the ranks that validate it: "root", or
            "first" of the group. An argument without a role is not made bad.
        good: the arguments of a valid call.
        right: the result of a valid call; by default the reference's for ``op``.
        op: the engine's name of the collective; calls of different ones disagree. Empty if it is not a collective.
        differs: the fields of ``RankContext`` that ranks must agree on.
        result: the argument that holds the result afterwards; empty if the result is returned.
        call: makes the call, if not by its path.
        before, after: complete a valid call, on every rank; then the result of ``after`` is compared.
        takes: arrays that are bad elsewhere, by their name in ``unsupported``, but not for this function.
        groups: whether it has a group.
        anywhere: whether it answers in any state.
    """

    path: str
    roles: Mapping[str, str]
    good: Callable[[RankContext], Arguments]
    right: Callable[[RankContext], Any] | None = None
    op: str = ""
    differs: tuple[str, ...] = ()
    result: str = ""
    call: Call | None = None
    before: Callable[[RankContext], Any] | None = None
    after: Callable[[RankContext], Any] | None = None
    takes: tuple[str, ...] = ()
    groups: bool = False
    anywhere: bool = False

    def made(self, context: RankContext, arguments: Arguments) -> Any:
        """Call the function."""
        return resolve(f"collshim.{self.path}")(**arguments) if self.call is None else self.call(context, arguments)

    def is_right(self, context: RankContext, value: Any) -> bool:
        """Return whether ``value`` is the right answer of a function that needs no communication."""
        return self.right is not None and _equal(value, self.right(context))

    def run(self, context: RankContext) -> str:
        """Make a valid call and complete it on this rank; describe a wrong result, or return an empty string."""
        wanted = context.result(self.op) if self.right is None else self.right(context)
        found = self._given(context)
        return "" if _equal(found, wanted) else f"{found} instead of {wanted}"

    def _given(self, context: RankContext) -> Any:
        arguments = self.good(context)
        if self.before is not None:
            self.before(context)
        returned = self.made(context, arguments)
        if self.after is not None:
            return self.after(context)
        return arguments[self.result] if self.result else returned


class Surface(NamedTuple):
    """The functions for one framework's users, or the engine's.

    Attributes:
        enter: makes a rank ready, once; gives the groups of the surface by name: "all", and if it has groups
            "turned", all ranks in another order, and "destroyed".
        states: keys of ``states.STATES`` in which every call of the surface is bad.
        threads_states: those that are bad if ranks are threads.
        array_kinds: the kinds of arrays that the surface returns if they are passed.
    """

    enter: Callable[[World], Mapping[str, tuple[tuple[int, ...], Any]]]
    spellings: Sequence[Spelling]
    states: tuple[str, ...] = ()
    threads_states: tuple[str, ...] = ()
    array_kinds: tuple[str, ...] = ("torch", "numpy")


def _equal(got: Any, wanted: Any) -> bool:
    if wanted is ...:
        return True
    if isinstance(wanted, list | tuple):
        return type(got) is type(wanted) and len(got) == len(wanted) and all(map(_equal, got, wanted))
    if isinstance(wanted, dict):
        return got.keys() == wanted.keys() and all(_equal(got[key], wanted[key]) for key in wanted)
    if isinstance(wanted, torch.Tensor):
        return isinstance(got, torch.Tensor) and torch.equal(got, wanted)
    if isinstance(wanted, np.ndarray):
        return isinstance(got, np.ndarray) and np.array_equal(got, wanted)
    return bool(got == wanted)
