"""Names for functions that other functions make, so that they can be pickled and errors show their names."""

from __future__ import annotations

from typing import Any


def name_functions(names: dict[str, Any]) -> None:
    """Give the public functions of a module, which calls this with its ``globals()``, the names that they have there.

    A function with several names gets the first one.
    """
    for name, value in names.items():
        made = "<locals>" in getattr(value, "__qualname__", "")
        if not made or name.startswith("_") or value.__module__ != names["__name__"]:
            continue
        function = value
        while function is not None:
            function.__name__ = function.__qualname__ = name
            function = getattr(function, "__wrapped__", None)
