"""The state of a rank while it answers, and how it finds functions by import path."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType
from typing import Any


class MissingFunctionError(LookupError):
    """Raised if a binding's dotted path does not resolve, so that its function is missing."""


@dataclass(frozen=True)
class RankContext:
    """The state of a rank while it answers: its rank, the prefix of its imports, its memory.

    The prefix "torch.distributed=mypkg.dist" replaces torch.distributed by the module mypkg.dist. ``backend`` is passed
    to torch's ``init_process_group``.
    """

    rank: int
    size: int
    prefix: str = "collshim."
    address: str = "127.0.0.1"
    port: int = 29500  # torchrun's default; if ranks are threads, nothing listens on it
    backend: str = "gloo"
    memory: dict[Hashable, Any] = field(default_factory=dict)

    def function(self, path: str) -> Any:
        """Return the object that the dotted ``path`` names; see ``resolve``.

        Raises:
            MissingFunctionError: the path does not resolve. Other exceptions of an import propagate.
        """
        return self.once(("function", path), lambda: resolve(placed(self.prefix, path)))

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return the value that ``make`` returned when this rank first requested ``key``."""
        if key not in self.memory:
            self.memory[key] = make()
        return self.memory[key]


def placed(prefix: str, path: str) -> str:
    """Return the dotted ``path`` under ``prefix``, or with one module replaced by another."""
    home, other, module = prefix.partition("=")
    if not other:
        return prefix + path
    return module + path[len(home) :] if f"{path}.".startswith(f"{home}.") else path


def resolve(path: str) -> Any:
    """Return the object that the dotted ``path`` names, attribute by attribute; import a submodule if there is none.

    Attributes come first because a submodule may share its path with another object: TensorFlow's ``tf.distribute`` is
    not the module of that path.

    Raises:
        MissingFunctionError: the path does not resolve. Other exceptions of an import propagate.
    """
    names = path.split(".")
    found = _import(names[0])
    for place, name in enumerate(names[1:], 1):
        try:
            found = getattr(found, name)
        except AttributeError as error:
            if not isinstance(found, ModuleType):
                raise MissingFunctionError(path) from error
            found = _import(".".join(names[: place + 1]))
    return found


def _import(path: str) -> Any:
    try:
        return import_module(path)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{path}.".startswith(f"{error.name}."):
            raise
        raise MissingFunctionError(path) from error
