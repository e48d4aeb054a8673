"""How the suite calls each spelling of a collective, and what it expects of it: see ``spellings`` for these.

This folder imports the standard library and NumPy only, so that it can run on the real framework under that
framework's own interpreter as well as on collshim's adapter.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from collshim.conformance.bindings.binding import Binding
from collshim.frameworks import FRAMEWORKS, known


@cache
def bindings() -> tuple[Binding, ...]:
    """Every binding of collshim's own frameworks, framework by framework."""
    return tuple(binding for framework in FRAMEWORKS for binding in bindings_of(framework))


@cache
def bindings_of(framework: str) -> tuple[Binding, ...]:
    """A framework's, of those that are known."""
    module = known()[framework].spellings or f"collshim.conformance.spellings.{framework}"
    found: tuple[Binding, ...] = import_module(module).SPELLINGS
    return found


@cache
def find(name: str) -> Binding:
    """The binding of this name.

    Raises:
        LookupError: there is none.
    """
    framework = name.partition(".")[0]
    for binding in bindings_of(framework) if framework in known() else ():
        if binding.name == name:
            return binding
    raise LookupError(f"there is no binding {name!r}; the names are those of bindings()")
