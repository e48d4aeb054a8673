"""Names that an adapter does not define: they are looked up in another package, if they mean the same there.

``import collshim.torch.nn.functional`` and ``import torch.nn.functional`` import the same module object. If the adapter
has a module of that path, such as ``collshim.torch.distributed``, it is used instead. An adapter lists the names that
have a different meaning or no counterpart: they are refused with advice.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

from collshim.adapting.absent import missing_attribute, missing_module, refuse_below

_NONE: Mapping[str, str] = MappingProxyType({})


class _FallThrough(MetaPathFinder, Loader):
    """Finds a package's missing modules in another package, and imports the same module objects."""

    def __init__(self, package: str, target: str, refused: Mapping[str, str]) -> None:
        self.package = package
        self._target = target
        self._refused = refused
        self._root = Path(import_module(package).__file__ or "").parent

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(f"{self.package}.") or self._is_own(fullname):
            return None
        below = fullname.removeprefix(f"{self.package}.")
        if below in self._refused:
            raise missing_module(fullname, self._refused[below])
        spec = self._spec(self._theirs(fullname))
        if spec is None:
            return None
        return ModuleSpec(fullname, self, origin=spec.origin, is_package=bool(spec.submodule_search_locations))

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(self._theirs(spec.name))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the module's spec, which the import system has just replaced; the module itself has already run."""
        spec = module.__spec__
        if spec is None or spec.loader is not self:
            return
        module.__spec__ = spec.loader_state
        if not hasattr(module, "__path__"):
            self._add_children(spec.name)

    def _add_children(self, fullname: str) -> None:
        """Make the modules below one that is not a package importable: ``torch._C`` has made them itself."""
        theirs = f"{self._theirs(fullname)}."
        for name, child in list(sys.modules.items()):
            if name.startswith(theirs):
                sys.modules.setdefault(f"{fullname}.{name.removeprefix(theirs)}", child)

    def get_code(self, fullname: str) -> Any:
        """Return the code of the other package's module, for ``python -m``."""
        spec = self._spec(self._theirs(fullname))
        loader: Any = None if spec is None else spec.loader
        return None if loader is None else loader.get_code(self._theirs(fullname))

    def _theirs(self, fullname: str) -> str:
        return self._target + fullname.removeprefix(self.package)

    def _spec(self, name: str) -> ModuleSpec | None:
        try:
            return find_spec(name)
        except ModuleNotFoundError:  # a parent package is missing
            return None
        except ValueError:  # the module has put an object without a spec in its own place, as torch.backends does
            return ModuleSpec(name, None, is_package=hasattr(sys.modules[name], "__path__"))

    def _is_own(self, fullname: str) -> bool:
        path = self._root.joinpath(*fullname.removeprefix(f"{self.package}.").split("."))
        return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def install(package: str, target: str, refused: Mapping[str, str] = _NONE) -> None:
    """Let imports of modules that ``package`` lacks import those of ``target``; a second call has no effect.

    The finder comes first in ``sys.meta_path``; otherwise modules below an aliased one would be loaded a second time.

    Args:
        package: the adapter, already imported, such as ``collshim.torch``.
        target: the package whose modules replace those that the adapter lacks.
        refused: paths below ``package`` that have no counterpart, each with advice: importing one raises a
            ModuleNotFoundError.
    """
    if not any(isinstance(finder, _FallThrough) and finder.package == package for finder in sys.meta_path):
        sys.meta_path.insert(0, _FallThrough(package, target, refused))
        refuse_below(package)


def names(
    module: str,
    targets: Sequence[ModuleType],
    refused: Mapping[str, str] = _NONE,
    adapt: Callable[[str, Any], Any] = lambda name, value: value,
) -> Callable[[str], Any]:
    """Return a module's ``__getattr__``: it takes a name from the first of ``targets`` that has it, and adapts it.

    The value is stored in the module, so that it is always the same object.

    Raises:
        AttributeError: no target has the name, or it is ``refused``, with the advice there.
    """

    def get(name: str) -> Any:
        if name in refused:
            raise missing_attribute(module, name, refused[name])
        for target in targets:
            if hasattr(target, name):
                break
        else:
            raise missing_attribute(module, name, targets=targets)
        value = adapt(name, getattr(target, name))
        if not name.startswith("__"):
            setattr(sys.modules[module], name, value)
        return value

    return get
