"""The interface of a patch for the modules that list what to replace in a framework."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class Replacing(Protocol):
    """The methods of ``patching.Patch`` that they use."""

    def replace(self, owner: Any, name: str, new: Any) -> None:
        """Replace ``owner``'s attribute by ``new``."""

    def replace_everywhere(self, old: Any, new: Any) -> None:
        """Replace ``old`` by ``new`` in every module that has it."""

    def at_end(self, ending: Callable[[], None]) -> None:
        """Call ``ending`` when the patch is undone."""
