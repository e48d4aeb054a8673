"""One module per framework: its arrays, the names that a call's text sees, how its ranks are started.

A dialect serves the real framework (prefix "") and collshim's adapter (prefix "collshim.") alike; its arrays are
replaced by torch's where the adapter answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from collshim.conformance.recorder.asked import Asked
from collshim.conformance.recorder.trees import Arrays


class Dialect(Protocol):
    """What the recorder needs of a framework.

    Attributes:
        arrays: its arrays.
        runs_on_cpu: whether its collectives do.
        limits: a pattern of exceptions' texts that tell of the backend that recorded, not of the framework.
        consequences: a pattern of texts that only tell of another rank's failure.
    """

    arrays: Arrays
    runs_on_cpu: bool
    limits: str
    consequences: str

    def version(self) -> str:
        """The version of the real framework."""
        ...

    def place(self) -> tuple[int, int]:
        """The rank of this process, and the number of ranks, before the framework is entered."""
        ...

    def enter(self, prefix: str, asked: Asked, rank: int) -> dict[str, Any]:
        """Make this rank ready for a call; the names that a text sees."""
        ...

    def command(self, python: str, size: int, world: str, port: int, folder: Path) -> list[Started]:
        """How the ranks of a world are started."""
        ...

    def leaves_unusable(self, classes: Sequence[str]) -> bool:
        """Whether a world is not to be used again after such an exception."""
        ...


class Started:
    """A process to start: what is put before and after the script, and what is put into its environment."""

    def __init__(self, before: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self.before = list(before)
        self.environment = dict(environment or {})


def dialect(framework: str) -> Dialect:
    """The dialect of a framework."""
    found: Dialect = import_module(f"collshim.conformance.recorder.dialects.{framework}").DIALECT
    return found


def modules(prefix: str, paths: Mapping[str, str]) -> dict[str, Any]:
    """The modules of these dotted paths under ``prefix``, by name; those that are not there are left out."""
    found = {}
    for name, path in paths.items():
        try:
            found[name] = import_module(prefix + path)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{prefix}{path}.".startswith(f"{error.name}."):
                raise
    return found
