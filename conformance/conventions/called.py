"""How a binding calls its function: the arguments by their parameters' names, recorded during the call."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from collshim.conformance.bindings.binding import Binding
from collshim.conformance.bindings.messages import Messages
from collshim.conformance.bindings.rank_context import RankContext, resolve

PREFIX = "collshim."
Notes: TypeAlias = "list[tuple[str, str]]"  # the path of a function that was called, and its arguments


@dataclass(frozen=True)
class Noting(RankContext):
    """A rank's context that records the calls of some functions: paths and arguments, the tested function's first."""

    watched: tuple[str, ...] = ()
    notes: Notes = field(default_factory=list)

    def function(self, path: str) -> Any:
        """Return the object at ``path``; if it is watched, its calls are recorded."""
        found = super().function(path)
        return _record(found, path, self.notes) if path in self.watched else found


def watched(binding: Binding) -> tuple[str, ...]:
    """Return the functions whose calls show how a binding calls its framework."""
    return binding.halves if isinstance(binding, Messages) else (binding.path,)


def call_of(binding: Binding, notes: Notes) -> str:
    """Return the call as text; the signature if no call was recorded (a method of an object that a framework made)."""
    said: dict[str, str] = {}
    for path, arguments in notes:
        said.setdefault(path, arguments)
    if binding.path not in said:
        return f"{binding.path}({', '.join(_required_parameters(binding.path))})"
    there = [path for path in watched(binding) if path in said]
    return ", ".join((path if path == binding.path else path.rpartition(".")[2]) + said[path] for path in there)


def _record(function: Any, path: str, notes: Notes, made_by: str = "") -> Callable[..., Any]:
    """Record the calls of ``function``; for a class, the calls of its instances."""
    signature = inspect.signature(function)

    def call(*arguments: Any, **keywords: Any) -> Any:
        text = f"{made_by}({', '.join(_passed_parameters(signature, arguments, keywords))})"
        if inspect.isclass(function):
            return _record(function(*arguments, **keywords), path, notes, text)
        notes.append((path, text))
        return function(*arguments, **keywords)

    return call


def _passed_parameters(signature: inspect.Signature, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> list[str]:
    """Return the parameters whose arguments differ from their defaults."""
    given = signature.bind(*arguments, **keywords).arguments
    pairs = [(signature.parameters[name], value) for name, value in given.items()]
    return [
        f"{one.name}={value}" if isinstance(value, bool) else one.name
        for one, value in pairs
        if one.kind is not one.VAR_KEYWORD and not _is_default(value, one.default)
    ]


def _is_default(value: Any, default: Any) -> bool:
    return value is default or (
        type(value) is type(default) and isinstance(value, bool | int | str) and value == default
    )


def _required_parameters(path: str) -> list[str]:
    parameters = inspect.signature(resolve(PREFIX + path)).parameters.values()
    return [one.name for one in parameters if one.default is one.empty and one.name != "self"]
