"""Determines which code imports: the program's own, or a library that may only check if a package is installed.

Code belongs to a library if its file is in one of this interpreter's library folders. A library is taken to only check
if it catches the import's failure, as in ``try: import oneflow``, or looks for a spec.
"""

from __future__ import annotations

import ast
import functools
import linecache
import site
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

_CAUGHT = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}
_HERE = f"{__package__}."
_MACHINERY = ("importlib", "importlib._bootstrap", "importlib._bootstrap_external", "importlib.util")


def importer() -> FrameType | None:
    """Return the frame of the code that imports: the nearest that is not part of the import machinery."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_machinery(frame.f_globals):
        frame = frame.f_back
    return frame


def _is_machinery(names: Mapping[str, Any]) -> bool:
    name = names.get("__name__", "")
    return name in _MACHINERY or name.startswith(_HERE) or name in ("sitecustomize", "runpy")


def package(frame: FrameType) -> str:
    """Return the package of a frame's code, even if it runs as ``__main__`` with ``python -m``."""
    spec = frame.f_globals.get("__spec__")
    return str(frame.f_globals.get("__name__", "") if spec is None else spec.name).partition(".")[0]


def is_library(frame: FrameType) -> bool:
    """Return whether a frame's code is a library's; code that runs as ``__main__`` or has no file is the program's."""
    file = frame.f_globals.get("__file__")
    if file is None or frame.f_globals.get("__name__") == "__main__":
        return False
    return _is_in(file, _libraries())


@functools.cache
def _is_in(file: str, folders: tuple[Path, ...]) -> bool:
    path = Path(file).resolve()
    return any(path.is_relative_to(folder) for folder in folders)


@functools.cache
def _libraries() -> tuple[Path, ...]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = [sysconfig.get_path(name) for name in names]
    users = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    return tuple({Path(folder).resolve() for folder in (*folders, *site.getsitepackages(), *users) if folder})


def is_guarded(frame: FrameType) -> bool:
    """Return whether the frame's current line is inside a ``try`` that catches the failure of an import."""
    spans = _guarded_lines(frame.f_code.co_filename)
    return any(first <= frame.f_lineno <= last for first, last in spans)


@functools.cache
def _guarded_lines(file: str) -> tuple[tuple[int, int], ...]:
    source = "".join(linecache.getlines(file))
    try:
        tree = ast.parse(source)
    except SyntaxError:  # the file cannot be parsed as Python, so nothing is known about it
        return ()
    return tuple(_spans(tree))


def _spans(tree: ast.Module) -> Iterator[tuple[int, int]]:
    for node in ast.walk(tree):
        guards = isinstance(node, ast.Try) and any(map(_catches, node.handlers))
        if isinstance(node, ast.Try | ast.With) and (guards or _suppresses(node)):
            yield node.body[0].lineno, node.body[-1].end_lineno or node.body[-1].lineno


def _suppresses(node: ast.AST) -> bool:
    return isinstance(node, ast.With) and any("suppress" in ast.dump(item.context_expr) for item in node.items)


def _catches(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    names = {node.id for node in ast.walk(handler.type) if isinstance(node, ast.Name)}
    return bool(names & _CAUGHT)
