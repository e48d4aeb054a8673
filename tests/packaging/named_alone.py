"""Run a program in an environment with only some distributions and their dependencies installed.

python tests/packaging/named_alone.py NAME,... PROGRAM ARGUMENT...
"""

from __future__ import annotations

import re
import runpy
import sys
from collections.abc import Iterable, Sequence
from importlib.abc import MetaPathFinder
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions


def find_required(names: Iterable[str]) -> set[str]:
    """Return these distributions, and those that they require without an extra."""
    found, left = set[str](), [normalize(name) for name in names]
    while left:
        name = left.pop()
        if name in found:
            continue
        try:
            lines = distribution(name).requires or []
        except PackageNotFoundError:  # for example, for another system
            continue
        found.add(name)
        left += [normalize(re.split(r"[^\w.-]", line, maxsplit=1)[0]) for line in lines if "extra ==" not in line]
    return found


def normalize(name: str) -> str:
    """Return a distribution's name in normalized form."""
    return re.sub(r"[-_.]+", "-", name).lower()


class Refusing(MetaPathFinder):
    """A finder that refuses the modules of other distributions."""

    def __init__(self, names: Iterable[str]) -> None:
        allowed = find_required(names)
        owners = packages_distributions()
        self._refused = {name for name, owner in owners.items() if allowed.isdisjoint(map(normalize, owner))}
        self._refused -= {"collshim", "collshim_pytest"}  # these come from the checkout

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> None:
        """See ``MetaPathFinder``."""
        if name.partition(".")[0] in self._refused:
            raise ModuleNotFoundError(f"{name} belongs to no named distribution", name=name)


if __name__ == "__main__":
    sys.meta_path.insert(0, Refusing(sys.argv[1].split(",")))
    del sys.argv[:2]
    runpy.run_path(sys.argv[0], run_name="__main__")
