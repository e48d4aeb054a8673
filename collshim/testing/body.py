"""Runs a test on one rank: sets up the rank's own fixtures, calls the test, and tears the fixtures down."""

from __future__ import annotations

import asyncio
import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

import collshim
from collshim.testing.group import default_group
from collshim.testing.ranks import Ranks
from collshim.world import World

OWN = ("rank", "comm", "rank_seed")
"""The plugin's fixtures that differ between ranks."""


class RankRequest:
    """The ``request`` of a fixture that belongs to a rank.

    If the rank is a thread, other attributes are those of pytest's request. If it is a process, the only others are
    ``config`` and ``node``.

    Attributes:
        param: the fixture's parameter, if it has any.
    """

    def __init__(self, values: Mapping[str, Any], stack: ExitStack, fixture: RankFixture, node: Any) -> None:
        self._values, self._stack, self.fixturename, self._node = values, stack, fixture.name, node
        if fixture.has_param:
            self.param = fixture.param

    def __getattr__(self, name: str) -> Any:
        if name != "param" and isinstance(self._node, pytest.Function):
            return getattr(self._node._request, name)
        if name in ("config", "node") and self._node is not None:
            return self._node if name == "node" else self._node.config
        more = "" if name == "param" else ", on a rank that is a process"
        raise AttributeError(f"the request of fixture {self.fixturename!r} has no {name!r}{more}")

    def getfixturevalue(self, name: str) -> Any:
        """Return the value of a fixture that was set up before.

        Raises:
            LookupError: no fixture of this name was set up.
        """
        if name not in self._values:
            raise LookupError(f"fixture {name!r} has not been set up: make it an argument of {self.fixturename!r}")
        return self._values[name]

    def addfinalizer(self, finalizer: Callable[[], object]) -> None:
        """Call a function when the test has ended on this rank."""
        self._stack.callback(finalizer)


@dataclass
class RankFixture:
    """A fixture that every rank sets up for itself.

    Attributes:
        function: returns the value; a generator function yields it, and then tears it down.
        argnames: the fixtures that it requests.
        takes_instance: whether it is a method of the test's class.
    """

    name: str
    function: Callable[..., Any]
    argnames: tuple[str, ...]
    takes_instance: bool = False
    has_param: bool = False
    param: Any = None

    def make(self, values: Mapping[str, Any], stack: ExitStack, instance: Any, node: Any) -> Any:
        """Set the fixture up and return its value; it is torn down when ``stack`` closes."""
        request = RankRequest(values, stack, self, node)
        given = {name: request if name == "request" else values[name] for name in self.argnames}
        call = self.function.__get__(instance) if self.takes_instance else self.function
        if inspect.isgeneratorfunction(self.function):
            return stack.enter_context(contextmanager(call)(**given))
        if inspect.iscoroutinefunction(self.function):
            return asyncio.run(call(**given))
        return call(**given)


@dataclass
class Body:
    """A test that each of its ranks runs.

    Attributes:
        function: the test.
        argnames: the fixtures and parameters that it requests.
        shared: the values that are the same on all ranks.
        fixtures: the fixtures that every rank sets up for itself, in order.
        seed: the seed from which the ranks' seeds are derived.
        instance: the object of the test's class; None if it has none. Rank 0 has it, the others have copies.
        node: pytest's object for the test, or the ``Node`` of a rank's process.
        drawn: the arguments that Hypothesis drew before the test.
        example: what ranks need to know of Hypothesis's example; None if Hypothesis does not call the test.
        ask: asks pytest's process for a choice of the example, on rank 0.
        noted: the notes, events and targets that each rank has reported to Hypothesis.
        traced: wraps the test on rank 0 for a debugger; None for no debugger.
    """

    ranks: Ranks
    function: Callable[..., Any]
    argnames: tuple[str, ...]
    shared: dict[str, Any]
    seed: int
    fixtures: Sequence[RankFixture] = ()
    instance: Any = None
    node: Any = None
    drawn: dict[str, Any] = field(default_factory=dict)
    example: Any = None
    ask: Callable[..., Any] | None = None
    noted: dict[int, Any] = field(default_factory=dict)
    traced: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None

    def __post_init__(self) -> None:
        is_one = self.instance is None or self.ranks.processes
        others = () if is_one else (copy.copy(self.instance) for _ in range(1, self.ranks.size))
        self._instances = [self.instance, *others]

    def __call__(self) -> None:
        """Run the test on this rank."""
        with ExitStack() as stack:
            if self.ranks.default_group:
                stack.enter_context(default_group())
            world = collshim.current()
            own = {"rank": world.rank, "comm": world.communicator, "rank_seed": self.seed + 1 + world.rank}
            instance = self._instances[world.rank % len(self._instances)]
            values = own | self.shared  # a project may override the plugin's fixtures
            for fixture in self.fixtures:
                values[fixture.name] = fixture.make(values, stack, instance, self.node)
            call = self.function if instance is None else self.function.__get__(instance)
            if self.traced is not None and world.rank == 0:
                call = self.traced(call)
            drawn = self.drawn
            if self.example is not None:
                drawn = drawn | stack.enter_context(self._drawing(world))
            result = call(**{name: values[name] for name in self.argnames}, **drawn)
            if inspect.iscoroutine(result):
                asyncio.run(_awaited(result))

    def _drawing(self, world: World) -> AbstractContextManager[dict[str, Any]]:
        from collshim.testing.drawing import Drawing

        drawing = Drawing(self.example, world.communicator, self.ask)
        self.noted[world.rank] = drawing.noted
        return drawing.in_force(self.function)


async def _awaited(result: Any) -> None:
    await result
