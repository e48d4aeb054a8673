"""What Python runs as it starts, where PYTHONPATH leads here: stand-ins for the frameworks of COLLSHIM_STAND_IN.

collshim, and torch with it, are imported when a framework is, and not before.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType

_HERE = Path(__file__).resolve().parent
_FRAMEWORKS = [name for name in os.environ.get("COLLSHIM_STAND_IN", "").split(",") if name]


class _First(MetaPathFinder):
    """Waits for the first import of a framework, and begins to stand in for all of them."""

    def __init__(self) -> None:
        self.waits = True

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not self.waits or fullname.partition(".")[0] not in _FRAMEWORKS:
            return None
        self.waits = False
        root = str(_HERE.parents[2])
        if root not in sys.path:
            sys.path.append(root)  # of a checkout
        from collshim.adapting import stand_in

        finder = stand_in.begin(_FRAMEWORKS)
        return finder.find_spec(fullname, path, target)


def _run_the_hidden_one() -> None:
    """Run the ``sitecustomize`` that would have run, had PYTHONPATH not led here."""
    others = [path for path in sys.path if Path(path).resolve() != _HERE]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(module_from_spec(spec))


sys.meta_path.insert(0, _First())
_run_the_hidden_one()
