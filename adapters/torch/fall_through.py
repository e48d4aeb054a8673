"""Imports below ``collshim.torch`` that name no module of the adapter's: they give torch's own module.

``import collshim.torch.nn.functional`` and ``import torch.nn.functional`` give one and the same module object. Where
the adapter has a module of that path, as ``collshim.torch.distributed``, that one is meant.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

_OURS = "collshim."
_PREFIX = "collshim.torch."
_ROOT = Path(__file__).parent


class _FallThrough(MetaPathFinder, Loader):
    """Finds ``collshim.torch.X`` as ``torch.X``."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(_PREFIX) or _is_ours(fullname):
            return None
        spec = find_spec(fullname.removeprefix(_OURS))
        if spec is None:
            return None
        return ModuleSpec(fullname, self, is_package=spec.submodule_search_locations is not None)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(spec.name.removeprefix(_OURS))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: torch's module has run. The import system has just given it another spec, which is undone."""
        spec = module.__spec__
        if spec is not None and spec.loader is self:
            module.__spec__ = spec.loader_state


def _is_ours(fullname: str) -> bool:
    place = _ROOT.joinpath(*fullname.removeprefix(_PREFIX).split("."))
    return place.with_suffix(".py").is_file() or (place / "__init__.py").is_file()


def install() -> None:
    """Let the import system search here first: what lies below an aliased module would else be loaded a second time."""
    if not any(isinstance(finder, _FallThrough) for finder in sys.meta_path):
        sys.meta_path.insert(0, _FallThrough())
