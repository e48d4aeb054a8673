"""Bindings: how the suite calls each spelling of a collective, and the answer it expects. They are in ``spellings``.

This folder imports only the standard library and NumPy, so that it can run on the real framework under that
framework's own interpreter as well as on collshim's adapter.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from collshim.conformance.bindings.binding import Binding
from collshim.frameworks import FRAMEWORKS, known


@cache
def bindings() -> tuple[Binding, ...]:
    """Return every binding of collshim's own frameworks, framework by framework."""
    return tuple(binding for framework in FRAMEWORKS for binding in bindings_of(framework))


@cache
def bindings_of(framework: str) -> tuple[Binding, ...]:
    """Return the bindings of a known framework."""
    module = known()[framework].spellings or f"collshim.conformance.spellings.{framework}"
    found: tuple[Binding, ...] = import_module(module).SPELLINGS
    return found


@cache
def find(name: str) -> Binding:
    """Return the binding of this name.

    Raises:
        LookupError: no binding has this name.
    """
    framework = name.partition(".")[0]
    for binding in bindings_of(framework) if framework in known() else ():
        if binding.name == name:
            return binding
    raise LookupError(f"there is no binding {name!r}; the names are those of bindings()")
