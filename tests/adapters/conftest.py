"""How tests of adapters start ranks that are threads, and check the errors of refused calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any, Protocol

import pytest

import collshim

SECONDS = 60
Around = Callable[[Callable[[], Any]], Any]


class Run(Protocol):
    def __call__(self, fn: Callable[..., Any], size: int, *args: Any) -> list[Any]: ...


class Refused(Protocol):
    def __call__(self, theirs: type[Exception], call: Callable[[], Any], match: str | None = None) -> str: ...


@pytest.fixture
def around() -> Around:
    """Return the wrapper that a rank calls a test's function through: a plain call, unless the framework needs more."""
    return lambda fn: fn()


@pytest.fixture
def run(around: Around) -> Run:
    """Return ``run(fn, size, *args)``, which returns the result of ``fn(*args)`` on each rank."""
    return lambda fn, size, *args: collshim.launch(around, size, args=(partial(fn, *args),), timeout=SECONDS)


def each_of(size: int, gives: Sequence[Any] | None = None) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Make a test of a function that each of ``size`` ranks calls; ``gives``, if any, is what they return, by rank."""

    def test_of(fn: Callable[..., Any]) -> Callable[..., None]:
        @wraps(fn)
        def test(run: Run, **fixtures: Any) -> None:
            found = run(partial(fn, **fixtures), size)
            assert gives is None or found == gives

        asked = [*inspect.signature(fn).parameters.values(), inspect.Parameter("run", inspect.Parameter.KEYWORD_ONLY)]
        vars(test)["__signature__"] = inspect.Signature(asked)
        return test

    return test_of


@pytest.fixture
def ours() -> type[Exception]:
    """The class of every refusal, besides the framework's own."""
    return collshim.ArgumentError


@pytest.fixture
def refused(ours: type[Exception]) -> Refused:
    """Return a check for our error as the framework's class, with ``match`` in its text, which it returns."""

    def check(theirs: type[Exception], call: Callable[[], Any], match: str | None = None) -> str:
        with pytest.raises(theirs, match=match) as caught:
            call()
        assert isinstance(caught.value, ours), repr(caught.value)
        return str(caught.value)

    return check
