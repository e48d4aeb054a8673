"""Patches that let collshim carry out the collectives of a real framework; all else remains the framework's own.

    collshim.patch("megengine")               # from now on; or "mindspore", or "oneflow"
    with collshim.patch("megengine"): ...     # for a block of code

``collshim run --patch megengine -n 4 script.py`` patches every rank before the script begins, and the processes that it
forks. The end of the block, or ``Patch.undo``, restores the replaced attributes.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

from collshim.errors import ArgumentError, ArgumentValueError, CollshimError, also
from collshim.patching import megengine, oneflow
from collshim.patching.mindspore import table as mindspore
from collshim.patching.replacing import Foreign

VARIABLE = "COLLSHIM_PATCH"
"""The variable with the comma-separated names of the frameworks that ``collshim run`` patches in the ranks."""

_PATCHES: dict[str, Callable[[Patch], None]] = {
    "megengine": megengine.apply,
    "mindspore": mindspore.apply,
    "oneflow": oneflow.apply,
}
_IMPORTS: dict[str, Callable[[], Any]] = {"oneflow": oneflow.load}
"""Functions that import a framework whose plain import would do too much."""


_INHERITED: Any = object()
"""Stands for an attribute that the owner did not have."""


class Patch:
    """The replacements made in a framework; as a context manager, it calls ``undo`` at the end of the block."""

    def __init__(self, framework: str) -> None:
        self.framework = framework
        self._earlier: list[tuple[Any, str, Any]] = []
        self._endings: list[Callable[[], None]] = []

    def replace(self, owner: Foreign, name: str, new: Foreign) -> None:
        """Replace ``owner``'s attribute by ``new``."""
        self._earlier.append((owner, name, vars(owner).get(name, _INHERITED)))
        setattr(owner, name, new)

    def replace_everywhere(self, old: Callable[..., Foreign], new: Callable[..., Foreign]) -> None:
        """Replace the function ``old`` by ``new`` in every module of the framework that has it under its own name."""
        name = old.__name__
        for module in _modules(self.framework):
            if getattr(module, name, None) is old:
                self.replace(module, name, new)

    def at_end(self, ending: Callable[[], None]) -> None:
        """Call ``ending`` in ``undo``."""
        self._endings.append(ending)

    def undo(self) -> None:
        """Restore all replaced attributes; a second call has no effect."""
        for ending in reversed(self._endings):
            ending()
        for owner, name, old in reversed(self._earlier):
            if old is _INHERITED:
                delattr(owner, name)
            else:
                setattr(owner, name, old)
        self._earlier, self._endings = [], []
        if _applied.get(self.framework) is self:
            del _applied[self.framework]

    def __enter__(self) -> Patch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.undo()


_applied: dict[str, Patch] = {}


def patch(framework: str) -> Patch:
    """Let collshim carry out the collectives of a real framework that is installed here.

    Returns:
        The patch; if the framework is already patched, that patch.

    Raises:
        ArgumentValueError: ``framework`` is not "megengine", "mindspore" or "oneflow".
        ArgumentError: (an ImportError too) the package is not installed.
    """
    if framework in _applied:
        return _applied[framework]
    require(framework)
    try:
        _IMPORTS.get(framework, lambda: importlib.import_module(framework))()
    except ImportError as error:
        raise _absent(framework, error) from error
    made = Patch(framework)
    _PATCHES[framework](made)
    _applied[framework] = made
    return made


def require(framework: str) -> None:
    """Raise an error if a framework cannot be patched or is not installed, without importing it.

    Raises:
        ArgumentValueError: ``framework`` is not "megengine", "mindspore" or "oneflow".
        ArgumentError: (an ImportError too) the package is not installed.
    """
    if framework not in _PATCHES:
        known = ", ".join(map(repr, _PATCHES))
        raise ArgumentValueError(f"patch: the framework is {framework!r}, should be one of {known}")
    if framework not in sys.modules and importlib.util.find_spec(framework) is None:
        raise _absent(framework, f"No module named {framework!r}")


def _absent(framework: str, why: object) -> CollshimError:
    text = f"patch: {framework} is not installed here ({why}): put collshim. in front of the import instead"
    return also(ArgumentError, ImportError)(text)


def _modules(framework: str) -> list[Foreign]:
    loaded = list(sys.modules.items())  # some of MegEngine's entries are not module objects
    return [module for name, module in loaded if name == framework or name.startswith(f"{framework}.")]
