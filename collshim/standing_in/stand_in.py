"""Adapters under the frameworks' own names: ``import oneflow`` imports ``collshim.oneflow``.

    with collshim.stand_in("oneflow"):        # for a block of code
        import oneflow as flow
    collshim run --as oneflow -n 2 script.py  # for the ranks of a script

The program's own code imports the stand-in, and so do libraries that need the framework. A library that only checks
whether the framework is installed (``try: import oneflow``, ``importlib.util.find_spec("oneflow")``) finds what it
finds without a stand-in: nothing, or the real package. If the real package is already loaded, as torch always is,
libraries keep it. ``sys.modules`` has the stand-in's modules under the framework's names, unless it already has the
real modules.

Interpreters that this process starts use stand-ins as well: COLLSHIM_STAND_IN names the frameworks, and PYTHONPATH
contains a ``sitecustomize`` that reads this variable, and then runs the ``sitecustomize`` that it hides. All of this
ends with the block.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from collshim.errors import ArgumentValueError, MissingNameError, also
from collshim.frameworks import FRAMEWORKS
from collshim.standing_in import importers

VARIABLE = "COLLSHIM_STAND_IN"
"""The variable that names the frameworks that have stand-ins, separated by commas."""

_STARTUP = str(Path(__file__).parent / "startup")


class _StandIns:
    """The frameworks that now have stand-ins.

    Attributes:
        counts: how often each was begun.
        before: its real modules that were loaded before; if there are any, more of them may be loaded since then.
        aliased: those for which the import system itself may have put modules of the stand-in beside the real ones.
        undo: undoes what its adapter has replaced in the real framework, which libraries keep.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.counts: dict[str, int] = {}
        self.before: dict[str, dict[str, ModuleType]] = {}
        self.aliased: set[str] = set()
        self.undo: dict[str, Callable[[], None]] = {}
        self.hiding = threading.local()
        self.importing: Callable[..., Any] = builtins.__import__
        self.import_module = importlib.import_module
        self.find_spec = importlib.util.find_spec

    def framework(self, name: str) -> str | None:
        """Return the framework that a module's name belongs to, if it has a stand-in."""
        top = name.partition(".")[0]
        return top if self.counts.get(top) else None

    def is_for(self, framework: str, frame: Any, *, looks: bool = False) -> bool:
        """Return whether an import in ``frame`` yields the stand-in; with ``looks``, the code only looks for a spec."""
        if getattr(self.hiding, "on", False):
            return False
        if frame is None:  # Python itself imports, for ``python -m``
            return True
        if importers.package(frame) in (framework, "collshim"):
            return False
        if not importers.is_library(frame):
            return True
        return not (self.before[framework] or looks or importers.is_guarded(frame))

    def begin(self, framework: str) -> None:
        with self.lock:
            self.counts[framework] = self.counts.get(framework, 0) + 1
            if self.counts[framework] == 1:
                self.before[framework] = _loaded(framework)
                with self.passing():
                    self.import_module(f"collshim.{framework}")
                self.before[framework] = _loaded(framework)  # the adapter may import the real one, as torch's does
                self.mirror(framework)
                replace = vars(sys.modules[f"collshim.{framework}"]).get("_for_libraries")
                if replace is not None:
                    self.undo[framework] = replace()
            if sum(self.counts.values()) == 1:
                self._hook()

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Let imports of this thread find the real modules."""
        was = getattr(self.hiding, "on", False)
        self.hiding.on = True
        try:
            yield
        finally:
            self.hiding.on = was

    def end(self, framework: str) -> None:
        if sys.is_finalizing():  # the program never left the block
            return
        with self.lock:
            self.counts[framework] -= 1
            if self.counts[framework] == 0:
                self.undo.pop(framework, _nothing)()
                for name, module in _loaded(framework).items():
                    if _is_stand_in(module) or not self.before[framework]:
                        del sys.modules[name]
                sys.modules.update(self.before[framework])
            if not any(self.counts.values()):
                self._unhook()

    def mirror(self, framework: str) -> None:
        """Put the adapter's modules into ``sys.modules`` under the framework's names, unless the real ones are."""
        if self.before[framework]:
            return
        ours = f"collshim.{framework}"
        for name, module in list(sys.modules.items()):
            if name == ours or name.startswith(f"{ours}."):
                sys.modules[name.removeprefix("collshim.")] = module

    @contextmanager
    def hidden(self, framework: str) -> Iterator[None]:
        """Take the stand-in's modules out of ``sys.modules`` for the block; the real modules stay, and new ones too.

        If the real modules are loaded, the stand-in's are not in ``sys.modules``. Then this neither searches there, as
        torch's functions import in loops, nor takes the lock, since imports of two threads may wait for each other.
        """
        if self.before[framework] and framework not in self.aliased:
            with self.passing():
                yield
            return
        with self.lock:
            ours = {name: module for name, module in _loaded(framework).items() if _is_stand_in(module)}
            for name in ours:
                del sys.modules[name]
            self.aliased.discard(framework)
            try:
                with self.passing():
                    yield
            finally:
                self.before[framework] = _loaded(framework)
                if not self.before[framework]:
                    sys.modules.update(ours)

    def _hook(self) -> None:
        self.importing = builtins.__import__
        self.import_module, self.find_spec = importlib.import_module, importlib.util.find_spec
        builtins.__import__ = _import
        importlib.import_module = _import_module
        importlib.util.find_spec = _find_spec
        sys.meta_path.insert(0, _ALIASES)

    def _unhook(self) -> None:
        builtins.__import__ = self.importing
        importlib.import_module, importlib.util.find_spec = self.import_module, self.find_spec
        sys.meta_path.remove(_ALIASES)


def _loaded(framework: str) -> dict[str, ModuleType]:
    """Return the modules in ``sys.modules`` under the framework's names."""
    found = sys.modules.items()
    return {name: module for name, module in list(found) if name == framework or name.startswith(f"{framework}.")}


def _nothing() -> None:
    """Undo nothing: the adapter has replaced nothing."""


def _is_stand_in(module: ModuleType) -> bool:
    return module.__name__.startswith("collshim.")


_STATE = _StandIns()


def _import(
    name: str,
    globals: Mapping[str, Any] | None = None,
    locals: Mapping[str, Any] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> Any:
    """Replace ``__import__``: import the stand-in for a framework's name, if it is for the importing code.

    C code passes an empty list, and takes what ``sys.modules`` has, whatever this returns. It may hold a lock of C++,
    for which another thread would wait with Python's lock: so if the module is loaded, this must not look at files.
    """
    framework = _STATE.framework(name) if level == 0 else None
    from_c = fromlist == [] and name in sys.modules
    if framework is None or from_c or getattr(_STATE.hiding, "on", False):
        return _STATE.importing(name, globals, locals, fromlist, level)
    if _STATE.is_for(framework, importers.importer()):
        module = _STATE.importing(f"collshim.{name}", globals, locals, fromlist, 0)
        _STATE.mirror(framework)
        _require(module, fromlist or ())
        return module if fromlist else sys.modules[f"collshim.{framework}"]
    with _STATE.hidden(framework):
        return _STATE.importing(name, globals, locals, fromlist, level)


def _require(module: ModuleType, names: Sequence[str]) -> None:
    """Raise the error for a missing name in ``from ... import``; Python's own ImportError would have no advice."""
    for name in set(names) - {"*"}:
        try:
            getattr(module, name)
        except MissingNameError as error:
            raise also(MissingNameError, ImportError)(*error.args) from None
        except AttributeError:
            continue  # it is a module still to be imported, or Python raises its own error


def _import_module(name: str, package: str | None = None) -> ModuleType:
    """Replace ``importlib.import_module`` in the same way."""
    framework = _STATE.framework(name)
    if framework is None or getattr(_STATE.hiding, "on", False):
        return _STATE.import_module(name, package)
    if _STATE.is_for(framework, importers.importer()):
        module = _STATE.import_module(f"collshim.{name}")
        _STATE.mirror(framework)
        return module
    with _STATE.hidden(framework):
        return _STATE.import_module(name, package)


def _find_spec(name: str, package: str | None = None) -> ModuleSpec | None:
    """Replace ``importlib.util.find_spec`` in the same way; a library that calls it only checks."""
    framework = _STATE.framework(name)
    if framework is None or getattr(_STATE.hiding, "on", False):
        return _STATE.find_spec(name, package)
    if _STATE.is_for(framework, importers.importer(), looks=True):
        return _ALIASES.alias(name)
    with _STATE.hidden(framework):
        return _STATE.find_spec(name, package)


class _Aliases(MetaPathFinder, Loader):
    """Finds the adapter's modules for a framework's names, for code that imports in any other way."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        framework = _STATE.framework(fullname)
        if framework is None or not _STATE.is_for(framework, importers.importer()):
            return None
        return self.alias(fullname)

    def alias(self, fullname: str) -> ModuleSpec | None:
        """Return the spec of the adapter's module for a framework's module name; None if there is none."""
        spec = _STATE.find_spec(f"collshim.{fullname}")
        if spec is None:
            return None
        found = ModuleSpec(fullname, self, origin=spec.origin, is_package=spec.submodule_search_locations is not None)
        found.has_location = spec.has_location
        return found

    def get_code(self, fullname: str) -> Any:
        """Return the code of the adapter's module, for ``python -m``."""
        spec = _STATE.find_spec(f"collshim.{fullname}")
        loader: Any = None if spec is None else spec.loader
        return None if loader is None else loader.get_code(f"collshim.{fullname}")

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = _STATE.import_module(f"collshim.{spec.name}")
        _STATE.aliased.add(spec.name.partition(".")[0])
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the module's spec, which the import system has just replaced; the module itself has already run."""
        spec = module.__spec__
        if spec is not None and spec.loader is self:
            module.__spec__ = spec.loader_state


_ALIASES = _Aliases()


@contextmanager
def stand_in(*frameworks: str) -> Iterator[Any]:
    """Let ``import oneflow`` import ``collshim.oneflow`` inside the block; yield the first framework's stand-in.

    Raises:
        ArgumentValueError: collshim has no adapter for the framework.
    """
    require(frameworks)
    changed = environment(frameworks)
    before = {name: os.environ.get(name) for name in changed}
    begun: list[str] = []
    try:
        for framework in frameworks:
            _STATE.begin(framework)
            begun.append(framework)
        os.environ.update(changed)
        yield sys.modules[f"collshim.{frameworks[0]}"]
    finally:
        for framework in reversed(begun):
            _STATE.end(framework)
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def require(frameworks: Sequence[str]) -> None:
    """Raise an error unless all of these are names of frameworks.

    Raises:
        ArgumentValueError: a name is not a framework's, or there is no name.
    """
    unknown = [framework for framework in frameworks if framework not in FRAMEWORKS]
    if unknown or not frameworks:
        names = ", ".join(map(repr, unknown)) or "nothing"
        raise ArgumentValueError(f"stand_in: the framework is {names}, should be one of {', '.join(FRAMEWORKS)}")


def environment(frameworks: Sequence[str]) -> dict[str, str]:
    """Return environment variables that make child interpreters use stand-ins for these frameworks too."""
    named = [name for name in os.environ.get(VARIABLE, "").split(",") if name]
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path and path != _STARTUP]
    names = list(dict.fromkeys((*named, *frameworks)))
    return {VARIABLE: ",".join(names), "PYTHONPATH": os.pathsep.join((_STARTUP, *paths))}


def begin(frameworks: Sequence[str]) -> MetaPathFinder:
    """Install stand-ins for these frameworks for the life of the process; return the finder of their modules."""
    require(frameworks)
    for framework in frameworks:
        _STATE.begin(framework)
    return _ALIASES


def follow_environment() -> None:
    """Begin exactly the stand-ins that the environment names now: this process was forked before they were chosen."""
    started: Any = getattr(sys.modules.get("sitecustomize"), "first", None)
    if started is not None:
        started.waits = False  # for the frameworks that were named when the interpreter started
    named = [name for name in os.environ.get(VARIABLE, "").split(",") if name]
    for framework in [name for name, count in _STATE.counts.items() if count and name not in named]:
        while _STATE.counts[framework]:
            _STATE.end(framework)
    for framework in named:
        if not _STATE.counts.get(framework):
            begin([framework])
