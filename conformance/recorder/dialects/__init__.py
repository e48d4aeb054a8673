"""One module per framework: its arrays, the names that a call's text can use, how its ranks are started.

A dialect serves both the real framework (prefix "") and collshim's adapter (prefix "collshim."); if the adapter
answers, its arrays are replaced by torch's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from collshim.conformance.recorder.asked import Asked
from collshim.conformance.recorder.trees import Arrays


class Dialect(Protocol):
    """The interface of a framework for the recorder.

    Attributes:
        arrays: the framework's arrays.
        runs_on_cpu: whether its collectives run on a CPU.
        limits: a pattern for exceptions' texts that show a limit of the recorded backend, not of the framework.
        consequences: a pattern for texts that only report another rank's failure.
    """

    arrays: Arrays
    runs_on_cpu: bool
    limits: str
    consequences: str

    def version(self) -> str:
        """Return the version of the real framework."""
        ...

    def place(self) -> tuple[int, int]:
        """Return this process's rank and the number of ranks; works before ``enter``."""
        ...

    def enter(self, prefix: str, asked: Asked, rank: int) -> dict[str, Any]:
        """Make this rank ready for a call; return the names that a text can use."""
        ...

    def command(self, python: str, size: int, world: str, port: int, folder: Path) -> list[Started]:
        """Return the processes that start the ranks of a world."""
        ...

    def leaves_unusable(self, classes: Sequence[str]) -> bool:
        """Return whether a world is unusable after this exception."""
        ...


class Started:
    """A process to start: what precedes the script, and its additional environment."""

    def __init__(self, before: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self.before = list(before)
        self.environment = dict(environment or {})


class OwnArrays:
    """The common part of every framework's arrays: its module's ``Tensor``; NumPy's arrays are accepted beside them.

    Attributes:
        path: the framework's module, imported on first use.
    """

    path = ""
    mutable = True
    marks = False

    @property
    def module(self) -> Any:
        """The real framework."""
        return import_module(self.path)

    def kind(self, value: object) -> str | None:
        """Return tensor, numpy or None."""
        if isinstance(value, self.module.Tensor):
            return "tensor"
        return "numpy" if isinstance(value, np.ndarray) else None

    def read(self, array: Any) -> tuple[str, NDArray[Any]]:
        """Return the dtype and the values as a NumPy array; waits for operations in progress."""
        return (array.dtype.name, np.array(array)) if isinstance(array, np.ndarray) else self.read_own(array)

    def read_own(self, array: Any) -> tuple[str, NDArray[Any]]:
        """Return the same for one of the framework's own arrays."""
        raise NotImplementedError

    def grad(self, array: Any) -> bool:
        """Return whether it requires a gradient, if its framework records that."""
        return self.marks and bool(getattr(array, "requires_grad", False))


def dialect(framework: str) -> Dialect:
    """Return the dialect of a framework."""
    found: Dialect = import_module(f"collshim.conformance.recorder.dialects.{framework}").DIALECT
    return found


def modules(prefix: str, paths: Mapping[str, str]) -> dict[str, Any]:
    """Import the modules at these dotted paths under ``prefix``; return those that exist, by name."""
    found = {}
    for name, path in paths.items():
        try:
            found[name] = import_module(prefix + path)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{prefix}{path}.".startswith(f"{error.name}."):
                raise
    return found
