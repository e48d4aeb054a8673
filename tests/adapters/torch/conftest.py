"""Ranks that are threads and have a default group."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import pytest

import collshim
import collshim.torch.distributed as dist

SECONDS = 60


class Run(Protocol):
    def __call__(self, fn: Callable[[], Any], size: int) -> list[Any]: ...


@pytest.fixture
def run() -> Iterator[Run]:
    """``run(fn, size)``: what ``fn()`` returns on each rank, after ``init_process_group``."""

    def rank(fn: Callable[[], Any]) -> Any:
        dist.init_process_group("gloo")
        result = fn()
        dist.destroy_process_group()
        return result

    with collshim.options(timeout=20):
        yield lambda fn, size: collshim.launch(rank, size, args=(fn,), timeout=SECONDS)


class Refused(Protocol):
    def __call__(self, theirs: type[Exception], call: Callable[[], Any], match: str | None = None) -> None: ...


@pytest.fixture
def refused() -> Refused:
    """Expect an error that is ours and torch's class, with ``match`` in its text."""

    def check(theirs: type[Exception], call: Callable[[], Any], match: str | None = None) -> None:
        with pytest.raises(theirs, match=match) as caught:
            call()
        assert isinstance(caught.value, collshim.CollshimError), repr(caught.value)

    return check
