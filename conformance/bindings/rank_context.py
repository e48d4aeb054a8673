"""Where a rank stands while it answers, and how it finds functions by import path."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType
from typing import Any


class MissingFunctionError(LookupError):
    """The dotted path of a binding does not resolve: the function is missing."""


@dataclass(frozen=True)
class RankContext:
    """What a rank knows while it answers: its rank, the prefix of its imports, its state.

    A prefix "torch.distributed=mypkg.dist" puts the module mypkg.dist in the place of torch.distributed. ``backend`` is
    what torch's ``init_process_group`` is given.
    """

    rank: int
    size: int
    prefix: str = "collshim."
    address: str = "127.0.0.1"
    port: int = 29500  # torchrun's default; where ranks are threads nothing listens
    backend: str = "gloo"
    memory: dict[Hashable, Any] = field(default_factory=dict)

    def function(self, path: str) -> Any:
        """What the dotted ``path`` names, see ``resolve``.

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
    """What the dotted ``path`` names: attribute by attribute, as a program writes it; what is not there is imported.

    A submodule may have the path of another object: TensorFlow's ``tf.distribute`` is no module of that path.

    Raises:
        MissingFunctionError: it does not resolve. What an import raises otherwise passes through.
    """
    names = path.split(".")
    found = _imported(names[0])
    for place, name in enumerate(names[1:], 1):
        try:
            found = getattr(found, name)
        except AttributeError as error:
            if not isinstance(found, ModuleType):
                raise MissingFunctionError(path) from error
            found = _imported(".".join(names[: place + 1]))
    return found


def _imported(path: str) -> Any:
    try:
        return import_module(path)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{path}.".startswith(f"{error.name}."):
            raise
        raise MissingFunctionError(path) from error
