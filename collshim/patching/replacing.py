"""What those modules need of a patch that know what is to be replaced in a framework."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class Replacing(Protocol):
    """What ``patching.Patch`` does."""

    def replace(self, owner: Any, name: str, new: Any) -> None:
        """Put ``new`` in the place of ``owner``'s attribute."""

    def replace_everywhere(self, old: Any, new: Any) -> None:
        """Put ``new`` in the place of ``old`` in every module that names it."""

    def at_end(self, ending: Callable[[], None]) -> None:
        """Call it when the patch is undone."""
