"""How these tests start ranks, and what a rank that is refused says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import pytest

import collshim
from collshim.mindspore.communication import init

SECONDS = 60


class Run(Protocol):
    def __call__(self, fn: Callable[[], Any], size: int) -> list[Any]: ...


@pytest.fixture
def run() -> Run:
    """Call ``init`` and a function on every rank, as threads; what the function returned on each."""

    def launched(fn: Callable[[], Any], size: int) -> list[Any]:
        def rank() -> Any:
            init("mccl")
            return fn()

        return collshim.launch(rank, size, timeout=SECONDS)

    return launched


@pytest.fixture(params=[1, 2, 4])
def size(request: pytest.FixtureRequest) -> int:
    """How many ranks."""
    count: int = request.param
    return count


class Refused(Protocol):
    def __call__(self, theirs: type[Exception], call: Callable[[], Any]) -> str: ...


@pytest.fixture
def refused() -> Refused:
    """Expect an error that is ours and the framework's class; its text."""

    def check(theirs: type[Exception], call: Callable[[], Any]) -> str:
        with pytest.raises(theirs) as caught:
            call()
        assert isinstance(caught.value, collshim.ArgumentError), repr(caught.value)
        return str(caught.value)

    return check
