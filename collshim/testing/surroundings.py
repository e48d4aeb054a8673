"""The state of pytest's process that a test may depend on, and that its ranks' processes must have too."""

from __future__ import annotations

import os
import pickle
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from collshim.environment import forget_others

_OF_A_RANK = (
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TORCHELASTIC_USE_AGENT_STORE",
    "PYTEST_ADDOPTS",
)
"""Environment variables whose values differ between the ranks' processes."""


class Surroundings(NamedTuple):
    """The state that fixtures and marks may have changed for one test.

    Attributes:
        environment: ``os.environ``.
        folder: the working directory.
        path: ``sys.path``.
        filters: the filters of ``warnings``, pickled.
    """

    environment: dict[str, str]
    folder: str
    path: list[str]
    filters: list[bytes]

    @classmethod
    def here(cls) -> Surroundings:
        """Return the state of this process."""
        environment = {name: value for name, value in os.environ.items() if name not in _OF_A_RANK}
        forget_others(environment)
        return cls(environment, os.getcwd(), list(sys.path), [*filter(None, map(_packed, warnings.filters))])

    @contextmanager
    def taken_over(self, warned: list[bytes]) -> Iterator[None]:
        """Set this process's state to these values inside the block; add the block's warnings to ``warned``."""
        own = {name: os.environ[name] for name in _OF_A_RANK if name in os.environ}
        _replace(self.environment | own)
        os.chdir(self.folder)
        sys.path[:] = self.path
        with warnings.catch_warnings(record=True) as found:
            warnings.filters[:] = map(pickle.loads, self.filters)  # type: ignore[index]
            try:
                yield
            finally:
                texts = ((str(each.message), each.category, each.filename, each.lineno) for each in found or ())
                warned += filter(None, map(_packed, texts))


def _replace(environment: dict[str, str]) -> None:
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]
    for name, value in environment.items():
        if os.environ.get(name) != value:
            os.environ[name] = value


def warn_again(warned: Iterable[bytes]) -> None:
    """Issue the warnings of the ranks' processes in this process, each once."""
    for each in dict.fromkeys(warned):
        try:
            text, category, file, line = pickle.loads(each)
            message = category(text)
        except Exception as error:  # the class is unknown here, or takes other arguments
            message, file, line = UserWarning(f"a rank's warning cannot be unpickled: {error}"), __file__, 1
        warnings.warn_explicit(message, type(message), file, line)


def _packed(entry: Any) -> bytes:
    """Pickle a warning or a warning filter; return empty bytes if its class cannot be pickled."""
    try:
        return pickle.dumps(entry)
    except Exception:  # a class may raise anything
        return b""
