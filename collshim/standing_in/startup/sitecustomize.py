"""Python runs this at startup if PYTHONPATH contains its folder: stand-ins for the frameworks in COLLSHIM_STAND_IN.

collshim, and torch with it, are imported only when a framework is imported.
"""

from __future__ import annotations

import builtins
import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any

_HERE = Path(__file__).resolve().parent
_FRAMEWORKS = [name for name in os.environ.get("COLLSHIM_STAND_IN", "").split(",") if name]
_MACHINERY = ("importlib", "_frozen_importlib", "runpy", __name__)


class _First(MetaPathFinder):
    """Waits for the first import of one of the frameworks, and then installs stand-ins for all of them.

    collshim itself imports the real torch, possibly before any other code asks for torch; such an import does not
    count.
    """

    def __init__(self) -> None:
        self.waits = True
        self._importing: Callable[..., Any] = builtins.__import__
        self._import_module = importlib.import_module
        self._hooks = self.import_name, self.import_module
        builtins.__import__, importlib.import_module = self._hooks
        sys.meta_path.insert(0, self)

    def import_name(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        """Replace ``__import__``."""
        if level == 0 and self._is_waited_for(name, _name_of(globals or {})):
            self._begin()
            return builtins.__import__(name, globals, locals, fromlist, level)
        return self._importing(name, globals, locals, fromlist, level)

    def import_module(self, name: str, package: str | None = None) -> ModuleType:
        """Replace ``importlib.import_module``."""
        if self._is_waited_for(name, _importer()):
            self._begin()
            return importlib.import_module(name, package)
        return self._import_module(name, package)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Handle code that imports in other ways than these two."""
        if not self._is_waited_for(fullname, _importer()):
            return None
        found = self._begin().find_spec(fullname, path, target)
        if found is None and fullname in sys.modules:  # it was loaded meanwhile, and must not run twice
            return ModuleSpec(fullname, _Loaded(sys.modules[fullname]))
        return found

    def _is_waited_for(self, name: str, importer: str) -> bool:
        framework = name.partition(".")[0]
        if not self.waits or framework not in _FRAMEWORKS or importer.partition(".")[0] in ("collshim", framework):
            return False
        return not any(map(_is_being_imported, ("collshim", framework)))  # this import may be part of that one

    def _begin(self) -> MetaPathFinder:
        self.waits = False
        if (builtins.__import__, importlib.import_module) == self._hooks:
            builtins.__import__, importlib.import_module = self._importing, self._import_module
        root = str(_HERE.parents[2])
        if root not in sys.path:
            sys.path.append(root)  # if collshim runs from a checkout
        from collshim.standing_in import stand_in

        return stand_in.begin(_FRAMEWORKS)


class _Loaded(Loader):
    """A loader for a module that is already loaded."""

    def __init__(self, module: ModuleType) -> None:
        self._module, self._spec = module, module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the module's spec, which the import system has just replaced; the module itself has already run."""
        module.__spec__ = self._spec


def _is_being_imported(package: str) -> bool:
    """Return whether a module of the package is still being imported."""
    found = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] == package]
    return any(getattr(getattr(module, "__spec__", None), "_initializing", False) for module in found)


def _importer() -> str:
    """Return the name of the module that imports: the nearest that is not part of the import machinery."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _MACHINERY:
        frame = frame.f_back
    return _name_of(frame.f_globals)


def _name_of(module: Mapping[str, Any]) -> str:
    """Return the name of the module with these globals, even if it runs as ``__main__`` with ``python -m``."""
    spec = module.get("__spec__")
    return str(module.get("__name__", "") if spec is None else spec.name)


def _run_hidden() -> None:
    """Run the ``sitecustomize`` that PYTHONPATH would have led to without this one."""
    others = [path for path in sys.path if Path(path).resolve() != _HERE]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(module_from_spec(spec))


first = _First() if _FRAMEWORKS else None
_run_hidden()
