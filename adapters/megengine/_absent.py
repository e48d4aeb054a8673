"""What is said of a name that MegEngine has and this package has not."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from collshim.errors import CollshimError, also


def saying(module: str, covers: str) -> Callable[[str], NoReturn]:
    """A module's ``__getattr__`` that says what the module covers."""

    def absent(name: str) -> NoReturn:
        raise also(CollshimError, AttributeError)(
            f"module {module!r} has no attribute {name!r}: of MegEngine, {module} covers {covers}"
        )

    return absent
