"""What is said of a name or a module that MindSpore has and this package has not."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import NoReturn

from collshim.errors import CollshimError, also

_COVERED: dict[str, str] = {}


def saying(module: str, covers: str) -> Callable[[str], NoReturn]:
    """A module's ``__getattr__`` that says what the module covers; imports below it say so too."""
    _COVERED[module] = covers

    def absent(name: str) -> NoReturn:
        raise also(CollshimError, AttributeError)(f"module {module!r} has no attribute {name!r}: {_sentence(module)}")

    return absent


def _sentence(module: str) -> str:
    return f"of MindSpore, {module} covers {_COVERED[module]}; compute the rest with torch"


class _Absent(MetaPathFinder):
    """Asked last, for modules of this package that nobody has found."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        parent, _, name = fullname.rpartition(".")
        if parent in _COVERED and not name.startswith("__"):
            kind = also(CollshimError, ModuleNotFoundError)
            raise kind(f"No module named {fullname!r}: {_sentence(parent)}")
        return None


def install() -> None:
    """Let imports of what is not here say so; once."""
    if not any(isinstance(finder, _Absent) for finder in sys.meta_path):
        sys.meta_path.append(_Absent())
