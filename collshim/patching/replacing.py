"""The interface of a patch for the modules that replace functions of a framework."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

Foreign: TypeAlias = Any
"""An object of the patched framework, whose types are unknown here, or an argument in the framework's form."""


class Replacing(Protocol):
    """The methods of ``patching.Patch`` that these modules use."""

    def replace(self, owner: Foreign, name: str, new: Foreign) -> None:
        """Replace ``owner``'s attribute by ``new``."""

    def replace_everywhere(self, old: Foreign, new: Foreign) -> None:
        """Replace ``old`` by ``new`` in every module that has it."""

    def at_end(self, ending: Callable[[], None]) -> None:
        """Call ``ending`` when the patch is undone."""
