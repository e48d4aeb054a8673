"""Error texts for names and modules that a framework has and its adapter lacks, however they are imported."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import NoReturn

from collshim.errors import CollshimError, also
from collshim.frameworks import FRAMEWORKS

_SENTENCES: dict[str, str] = {}


def saying(module: str, covers: str, instead: str = "compute the rest with torch") -> Callable[[str], NoReturn]:
    """Return a module's ``__getattr__`` that says what the module covers; imports below the module say so too.

    Args:
        module: its dotted name, below ``collshim.<framework>``.
        covers: the functions that it has.
        instead: what to do about the others.
    """
    framework = FRAMEWORKS[module.split(".")[1]].title
    sentence = _SENTENCES[module] = f"of {framework}, {module} covers {covers}; {instead}"
    if not any(isinstance(finder, _Absent) for finder in sys.meta_path):
        sys.meta_path.append(_Absent())

    def absent(name: str) -> NoReturn:
        raise also(CollshimError, AttributeError)(f"module {module!r} has no attribute {name!r}: {sentence}")

    return absent


class _Absent(MetaPathFinder):
    """Raises an informative error for modules below these that no other finder has found."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        parent, _, name = fullname.rpartition(".")
        if parent in _SENTENCES and not name.startswith("__"):
            kind = also(CollshimError, ModuleNotFoundError)
            raise kind(f"No module named {fullname!r}: {_SENTENCES[parent]}")
        return None
