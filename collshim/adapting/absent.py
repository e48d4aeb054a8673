"""Errors for names and modules that a framework has but its adapter lacks, in any form of import.

Each error's text names the nearest names, what to use instead, how to run the real framework, and the page to read.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import NoReturn

from collshim.adapting.replacements import computes, is_listed, replacement
from collshim.errors import MissingNameError, also
from collshim.frameworks import FRAMEWORKS

_SHOWN = 3
"""The number of similar names that an error lists."""

_LIKENESS = 0.75
_TORCH, _NOTHING, _NOT_IN_TORCH = "compute it with torch", "collshim has nothing like it", "torch has no such name"

_SAID: dict[str, str] = {}
"""By module, what to do about its missing names if ``replacements`` does not know them."""


def saying(module: str, instead: str = "") -> Callable[[str], NoReturn]:
    """Return a module's ``__getattr__``, which refuses missing names; missing modules below it are refused too.

    Args:
        module: the module's dotted name, such as ``collshim.mindspore.nn``.
        instead: what to do about the names that ``replacements`` does not know.
    """
    refuse_below(module, instead)
    return partial(_refuse, module)


def refuse_everywhere(adapter: str) -> None:
    """Add such a ``__getattr__`` to each loaded module of an adapter that has none; call this once all are loaded."""
    for name, module in list(sys.modules.items()):
        if name.startswith(f"{adapter}.") and "__getattr__" not in vars(module):
            vars(module)["__getattr__"] = partial(_refuse, name)


def _refuse(module: str, name: str) -> NoReturn:
    raise missing_attribute(module, name)


def refuse_below(module: str, instead: str = "") -> None:
    """Refuse imports of modules below ``module`` that no other finder finds."""
    _SAID[module] = instead
    if not any(isinstance(finder, _Absent) for finder in sys.meta_path):
        sys.meta_path.append(_Absent())


def missing_attribute(
    module: str, name: str, instead: str = "", targets: Sequence[ModuleType] = ()
) -> AttributeError | MissingNameError:
    """Return the error for a missing name of an adapter's module; it is an AttributeError too.

    Args:
        module: the module's dotted name, such as ``collshim.mindspore.nn``.
        name: the missing name.
        instead: what to do instead, if the caller knows better than ``replacements``.
        targets: the modules that the module takes its other names from.
    """
    if name.startswith("__"):  # Python itself looks these up
        return AttributeError(f"module {module!r} has no attribute {name!r}")
    text = f"module {module!r} has no attribute {name!r}: {advice(module, name, instead, targets)}"
    return also(MissingNameError, AttributeError)(text)


def missing_module(name: str, instead: str = "") -> MissingNameError:
    """Return the error for a missing module of an adapter; it is a ModuleNotFoundError too."""
    parent, _, last = name.rpartition(".")
    return also(MissingNameError, ModuleNotFoundError)(f"No module named {name!r}: {advice(parent, last, instead)}")


def advice(module: str, name: str, instead: str = "", targets: Sequence[ModuleType] = ()) -> str:
    """Return what to do about a missing name; the arguments are those of ``missing_attribute``."""
    _, framework, *folders = module.split(".")
    entry = FRAMEWORKS[framework]
    parts = [instead] if instead else [*_meant(module, name, targets), _instead(module, name)]
    if not any(parts):
        is_torch = framework == "torch"  # its adapter passes other names on to torch
        parts = [_NOT_IN_TORCH if is_torch else _TORCH if computes(framework, ".".join(folders)) else _NOTHING]
    if entry.patched and sys.version_info[:2] <= entry.last_python:
        parts.append(f"`collshim run --patch {framework}` runs {entry.title} {entry.patched} itself")
    return "; ".join(filter(None, (*parts, f"see docs/{framework}.md")))


def nearest(module: str, name: str, targets: Sequence[ModuleType] = ()) -> list[str]:
    """Return the names of an adapter's module that are similar to a missing name, the nearest first."""
    loaded = [*filter(None, (sys.modules.get(module),)), *targets]
    names = {member.casefold(): member for one in reversed(loaded) for member in _public(one)}
    return [names[key] for key in difflib.get_close_matches(name.casefold(), names, _SHOWN, _LIKENESS)]


def elsewhere(module: str, name: str) -> str:
    """Return the shortest dotted name of another loaded module of the adapter that has this name; "" if none has."""
    adapter = ".".join(module.split(".")[:2])
    modules = [
        other
        for other, loaded in list(sys.modules.items())
        if f"{other}.".startswith(f"{adapter}.")
        and "._" not in other
        and name in vars(loaded).get("__all__", ())
        and not isinstance(vars(loaded).get(name), ModuleType)  # a module of that name has different contents
    ]
    return min(modules, key=lambda other: (other.count("."), other), default="")


def _public(module: ModuleType) -> list[str]:
    """Return a module's public names: ``__all__``, or all public names except modules."""
    return vars(module).get("__all__") or [
        name for name in dir(module) if not name.startswith("_") and not isinstance(vars(module).get(name), ModuleType)
    ]


def _meant(module: str, name: str, targets: Sequence[ModuleType]) -> list[str]:
    """Return texts about the adapter's names that the program may have meant."""
    if other := elsewhere(module, name):
        return [f"it is {other}.{name}"]
    _, framework, *folders = module.split(".")
    names = [] if is_listed(framework, ".".join((*folders, name))) else nearest(module, name, targets)
    return [f"the nearest {'name is' if len(names) == 1 else 'names are'} {', '.join(names)}"] if names else []


def _instead(module: str, name: str) -> str:
    """Return what to use instead of the name, according to ``saying`` or ``replacements``; "" if nothing is known."""
    _, framework, *folders = module.split(".")
    found = replacement(framework, ".".join((*folders, name)))
    return f"use {found}" if found else _SAID.get(module, "")


class _Absent(MetaPathFinder):
    """Refuses modules below those passed to ``refuse_below`` if no other finder has found them."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        parent, _, name = fullname.rpartition(".")
        if parent in _SAID and not name.startswith("__"):
            raise missing_module(fullname)
        return None
