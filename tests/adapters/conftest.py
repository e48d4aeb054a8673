"""How tests of adapters start ranks that are threads, and what a rank that is refused says."""

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
    """What a rank does with a test's function: call it, where the framework's ranks need no more."""
    return lambda fn: fn()


@pytest.fixture
def run(around: Around) -> Run:
    """``run(fn, size, *args)``: what ``fn(*args)`` returns on each rank."""
    return lambda fn, size, *args: collshim.launch(around, size, args=(partial(fn, *args),), timeout=SECONDS)


def each_of(size: int, gives: Sequence[Any] | None = None) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """A test of what each of ``size`` ranks does; ``gives``, where it is given, is what they return, by rank."""

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
    """What a refusal is beside the framework's class."""
    return collshim.ArgumentError


@pytest.fixture
def refused(ours: type[Exception]) -> Refused:
    """Expect an error that is ours and the framework's class, with ``match`` in its text; the text."""

    def check(theirs: type[Exception], call: Callable[[], Any], match: str | None = None) -> str:
        with pytest.raises(theirs, match=match) as caught:
            call()
        assert isinstance(caught.value, ours), repr(caught.value)
        return str(caught.value)

    return check
