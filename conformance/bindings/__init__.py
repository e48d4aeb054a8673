"""How the suite calls each spelling of a collective, and what it expects of it: see ``spellings`` for these.

This folder imports the standard library and NumPy only, so that it can run on the real framework under that
framework's own interpreter as well as on collshim's adapter.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from collshim.conformance.bindings.binding import Binding

FRAMEWORKS = ("torch", "oneflow", "mindspore", "tensorflow", "megengine")


@cache
def bindings() -> tuple[Binding, ...]:
    """Every binding, framework by framework."""
    modules = [import_module(f"collshim.conformance.spellings.{framework}") for framework in FRAMEWORKS]
    return tuple(binding for module in modules for binding in module.SPELLINGS)


@cache
def find(name: str) -> Binding:
    """The binding of this name.

    Raises:
        LookupError: there is none.
    """
    for binding in bindings():
        if binding.name == name:
            return binding
    raise LookupError(f"there is no binding {name!r}; the names are those of bindings()")
