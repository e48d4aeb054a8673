"""Looks up what the adapters contain: names by dotted path, the types of calls' results, and arguments."""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import sys
import types
import typing
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from torch._ops import _OpNamespace

from collshim.errors import MissingNameError
from collshim.frameworks import FRAMEWORKS

PREFIX = "collshim."
_SELF = re.compile(r"\bself\.(\w+)\s*(?::[^=\n]+)?=")


@dataclass(frozen=True)
class Missing:
    """A name that an adapter lacks.

    Attributes:
        path: the first part of the name that is missing.
        advice: what to do about it.
    """

    path: str
    advice: str


@dataclass(frozen=True)
class Instance:
    """An object of a class of an adapter, which exists only when the program runs."""

    kind: type


def framework_of(name: str) -> tuple[str, str] | None:
    """Return the framework of a dotted name, and the name in the framework; None if it belongs to no framework."""
    name = name.removeprefix(PREFIX)
    framework = name.partition(".")[0]
    return (framework, name) if framework in FRAMEWORKS else None


@functools.cache
def look_up(name: str) -> Any:
    """Return the adapter's object for a framework's dotted name, which may be a member of a class, or a ``Missing``.

    Attributes of other objects, except dtypes, are not looked up; the object itself is returned.
    """
    found = _by_attributes(name)
    if isinstance(found, Missing):  # a module and a function may have the same name, such as megengine.tensor
        module, _, last = name.rpartition(".")
        loaded = sys.modules.get(PREFIX + module)
        return getattr(loaded, last, found) if loaded is not None else found
    return found


def _by_attributes(name: str) -> Any:
    found: Any = None
    parts = name.split(".")
    for number, part in enumerate(parts):
        path = ".".join(parts[: number + 1])
        if number and not isinstance(found, ModuleType | type):
            is_missing = isinstance(found, torch.dtype) and not hasattr(found, part)
            advice = f"use tf.as_dtype(x).{part}" if parts[0] == "tensorflow" else ""
            return Missing(path, advice) if is_missing else found
        found = _module(path) if number == 0 else _member(found, part, path)
        if isinstance(found, Missing):
            return found
    return found


def _module(path: str) -> Any:
    try:
        return importlib.import_module(PREFIX + path)
    except MissingNameError as error:
        return Missing(path, _advice(error))
    except (ImportError, ValueError) as error:  # ValueError: torch has modules without a spec
        return None if _lacks_package(error) else Missing(path, str(error))


def _lacks_package(error: Exception) -> bool:
    """Return whether a module exists, but imports a package that is not installed, as ``torch.utils.tensorboard``."""
    name = getattr(error, "name", None)
    return isinstance(error, ModuleNotFoundError) and name is not None and framework_of(name) is None


def _member(owner: ModuleType | type, name: str, path: str) -> Any:
    try:
        return getattr(owner, name)
    except ImportError as error:  # the module is imported at its first use
        return Missing(path, str(error))
    except AttributeError as error:
        if isinstance(owner, _OpNamespace):  # libraries register operators when they are loaded
            return None
        if isinstance(owner, type):
            return Missing(path, "") if not has_member(owner, name) else None
        module = _module(path)
        return Missing(path, _advice(error) or _absent_from_package(owner)) if isinstance(module, Missing) else module


def _absent_from_package(owner: ModuleType) -> str:
    """Return a note if a package that an adapter exposes, such as Keras, lacks a name; "" for an adapter."""
    package = owner.__name__.partition(".")[0]
    version = getattr(sys.modules.get(package), "__version__", "")
    return "" if owner.__name__.startswith(PREFIX) else f"{package} {version} has no such name".replace("  ", " ")


def _advice(error: BaseException) -> str:
    """Return the part of an error text that names a replacement; the report has the rest once, at its end."""
    parts = str(error).partition(": ")[2].split("; ")
    return "; ".join(part for part in parts if not part.startswith(("`collshim run", "see docs/")))


def has_member(kind: type, name: str) -> bool:
    """Return whether objects of a class have an attribute, as far as its source shows."""
    own = {base for base in kind.__mro__ if base is not object}
    if hasattr(kind, name) or any("__getattr__" in vars(base) for base in own):
        return True
    return any(name in getattr(base, "__annotations__", {}) or name in _assigned_by(base) for base in own)


@functools.cache
def _assigned_by(kind: type) -> frozenset[str]:
    """Return the attributes that a class's methods assign; none if there is no source."""
    try:
        source = inspect.getsource(kind)
    except (OSError, TypeError):
        return frozenset()
    return frozenset(_SELF.findall(source))


@functools.cache
def _hints(function: Any) -> Any:
    try:
        return typing.get_type_hints(function)
    except (NameError, TypeError, AttributeError):  # names imported only for type checkers, or not a function
        return {}


def result_of(function: Any) -> Any:
    """Return the result of calling an object, as an ``Instance``, or None if its annotations do not show it."""
    if isinstance(function, type):
        return Instance(function)
    if isinstance(function, Instance):
        return None
    if function is None or not isinstance(function, Hashable):  # methods of some C++ classes have no hash
        return None
    return _instance(_hints(function).get("return"), function)


def _instance(hint: Any, function: Any) -> Instance | None:
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        kinds = [one for one in typing.get_args(hint) if one not in (type(None), Any)]
        return _instance(kinds[0], function) if len(kinds) == 1 else None
    kind = typing.get_origin(hint) or hint
    if kind is getattr(typing, "Self", object()):
        kind = getattr(function, "__self__", None)
    return Instance(kind) if isinstance(kind, type) and kind.__module__.startswith(PREFIX) else None


def attribute_of(owner: Any, name: str) -> Any:
    """Return what is known about an attribute of an object or an ``Instance``; None if unknown, or a ``Missing``."""
    if not isinstance(owner, Instance):
        return getattr(owner, name, None) if isinstance(owner, type) else None
    if not has_member(owner.kind, name):
        return Missing(f"{owner.kind.__qualname__}.{name}", "")
    found = inspect.getattr_static(owner.kind, name, None)
    if isinstance(found, property) and found.fget is not None:
        return result_of(found.fget)
    return getattr(owner.kind, name, None)


def unknown_arguments(function: Any, keywords: typing.Iterable[str]) -> list[str]:
    """Return the keywords of a call that an adapter's function does not take."""
    taken = _keywords(function)
    return [] if taken is None else [name for name in keywords if name not in taken]


def _keywords(function: Any) -> set[str] | None:
    """Return the keywords that an object takes; None if it takes any, or if they are unknown."""
    if not callable(function) or isinstance(function, Instance):
        return None
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return None
    return {one.name for one in parameters if one.kind is not one.POSITIONAL_ONLY}


def parameters(function: Any) -> Iterator[str]:
    """Yield the names of a callable's parameters, in order."""
    target = function.kind.__call__ if isinstance(function, Instance) else function
    try:
        names = list(inspect.signature(target).parameters)
    except (TypeError, ValueError):
        return
    yield from (name for name in names if name != "self")
