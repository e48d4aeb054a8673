"""``torch.compile`` breaks its graph at a call of collshim, and leaves collshim's own frames alone.

Dynamo would trace into them, and cannot: they use stores, sockets and threads. It reads which folders to skip when it
is first imported, which takes seconds; so they are added then, and a program that does not compile pays nothing.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_RULES = "torch._dynamo.trace_rules"


def leave_alone() -> None:
    """Tell Dynamo, now or when it is imported."""
    if _RULES in sys.modules:
        sys.modules[_RULES].add("collshim")
    else:
        sys.meta_path.insert(0, _Hook())


class _Hook(MetaPathFinder, Loader):
    """Finds Dynamo's rules, once, as Python would; once they are loaded, adds collshim to them."""

    _loader: Loader

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != _RULES:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            self._loader, spec.loader = spec.loader, self
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        module.add("collshim")
