"""Where a rank stands while it answers, and how it finds functions by import path."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import reduce
from importlib import import_module
from typing import Any


class MissingFunctionError(LookupError):
    """The dotted path of a binding does not resolve: the function is missing."""


@dataclass(frozen=True)
class Place:
    """Where a rank stands while it answers: its rank, the prefix of its imports, what it keeps.

    A prefix "torch.distributed=mypkg.dist" puts the module mypkg.dist in the place of torch.distributed.
    """

    rank: int
    size: int
    prefix: str = "collshim."
    address: str = "127.0.0.1"
    port: int = 29500  # torchrun's default; where ranks are threads nothing listens
    memory: dict[Hashable, Any] = field(default_factory=dict)

    def function(self, path: str) -> Any:
        """What the dotted ``path`` names: the longest importable part of it, then its attributes.

        Raises:
            MissingFunctionError: the path does not resolve. What an import raises otherwise passes through.
        """
        return self.once(("function", path), lambda: resolve(placed(self.prefix, path)))

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """What ``make`` returned when this rank first asked for ``key``."""
        if key not in self.memory:
            self.memory[key] = make()
        return self.memory[key]


def placed(prefix: str, path: str) -> str:
    """The dotted ``path`` under ``prefix``, or with one module in the place of another."""
    home, other, module = prefix.partition("=")
    if not other:
        return prefix + path
    return module + path[len(home) :] if f"{path}.".startswith(f"{home}.") else path


def resolve(path: str) -> Any:
    """What the dotted ``path`` names.

    Raises:
        MissingFunctionError: it does not resolve. What an import raises otherwise passes through.
    """
    names = path.split(".")
    module, rest = _imported(names)
    try:
        return reduce(getattr, rest, module)
    except AttributeError as error:
        raise MissingFunctionError(path) from error


def _imported(names: list[str]) -> tuple[Any, list[str]]:
    for end in range(len(names), 0, -1):
        path = ".".join(names[:end])
        try:
            return import_module(path), names[end:]
        except ModuleNotFoundError as error:
            if error.name is None or not f"{path}.".startswith(f"{error.name}."):
                raise
    raise MissingFunctionError(".".join(names))
