"""One module per framework: its arrays, the names that a call's text sees, how its ranks are started.

A dialect serves the real framework (prefix "") and collshim's adapter (prefix "collshim.") alike; its arrays are
replaced by torch's where the adapter answers.
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


class OwnArrays:
    """What the arrays of every framework have in common; they are ``Tensor`` in its module, and NumPy's go beside them.

    Attributes:
        path: the framework's module, imported when first needed.
    """

    path = ""
    mutable = True
    marks = False

    @property
    def module(self) -> Any:
        """The real framework."""
        return import_module(self.path)

    def kind(self, value: object) -> str | None:
        """tensor, numpy or None."""
        if isinstance(value, self.module.Tensor):
            return "tensor"
        return "numpy" if isinstance(value, np.ndarray) else None

    def read(self, array: Any) -> tuple[str, NDArray[Any]]:
        """The values in NumPy's terms; waits for what is under way."""
        return (array.dtype.name, np.array(array)) if isinstance(array, np.ndarray) else self.read_own(array)

    def read_own(self, array: Any) -> tuple[str, NDArray[Any]]:
        """The same of an array of the framework's own."""
        raise NotImplementedError

    def grad(self, array: Any) -> bool:
        """Whether it requires a gradient, where that can be told."""
        return self.marks and bool(getattr(array, "requires_grad", False))


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
