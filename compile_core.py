"""Compile the core of the meeting in shared memory, from ``_core.c`` and its headers; needs Python alone.

``python compile_core.py`` compiles it beside its source in this checkout; ``hatch_build.py`` compiles it for a wheel.
``COLLSHIM_CORE=require`` makes a failure an error, and ``COLLSHIM_CORE=skip`` compiles nothing. Otherwise a failure is
a warning.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent
FOLDER = "collshim/transports/shared_memory"
IS_FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
FILE = f"_core{sysconfig.get_config_var('EXT_SUFFIX')}" if IS_FREE_THREADED else "_core.abi3.so"

# No contraction: a sum must have the same bits on every processor. Python's signatures have unused parameters.
_FLAGS = ("-std=c11", "-O3", "-ffp-contract=off", "-fPIC", "-shared", "-Wall", "-Wextra", "-Wno-unused-parameter")
_SECONDS = 300
_OF_BUILDS = ("require", "skip")
_OF_RUNS = ("compiled", "python")
"""The values of ``COLLSHIM_CORE`` when collshim is imported, which a build ignores."""


class CompileError(Exception):
    """The core cannot be compiled here."""


def provide(target: Path, warn: Callable[[str], None]) -> bool:
    """Compile the core into the file ``target``, as ``COLLSHIM_CORE`` asks; return whether it is there.

    Otherwise no such file is left, and ``warn`` gets the reason unless ``COLLSHIM_CORE`` is skip.

    Raises:
        CompileError: ``COLLSHIM_CORE`` is require, and the core cannot be compiled; or it has an unknown value.
    """
    asked = os.environ.get("COLLSHIM_CORE", "")
    if asked not in ("", *_OF_BUILDS, *_OF_RUNS):
        raise CompileError(f"COLLSHIM_CORE is {asked!r}, should be one of {_OF_BUILDS} in a build")
    try:
        if asked != "skip":
            _compile(target)
            return True
    except CompileError as error:
        if asked == "require":
            raise CompileError(f"COLLSHIM_CORE is 'require', but the core cannot be compiled: {error}") from error
        warn(f"WARNING: the core of collshim is not compiled: {error}")
        warn("WARNING: processes will use shared memory through pure Python, which is slower and needs x86-64")
    target.unlink(missing_ok=True)
    return False


def _compile(target: Path) -> None:
    if sys.platform != "linux":
        raise CompileError(f"the system is {sys.platform}, should be linux")
    if sys.implementation.name != "cpython":
        raise CompileError(f"the interpreter is {sys.implementation.name}, should be cpython")
    command = [*_compiler(), *_FLAGS, *(f"-I{folder}" for folder in _headers()), str(ROOT / FOLDER / "_core.c"), "-o"]
    unfinished = target.with_name(f"_core.{os.getpid()}.so")  # a process may have mapped the file that this replaces
    try:
        _run([*command, str(unfinished)])
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def _compiler() -> list[str]:
    """Find a C compiler: the one in ``CC``; if that is not set, the one that compiled Python, or a usual one."""
    chosen = os.environ.get("CC")
    names = [chosen] if chosen else [sysconfig.get_config_var("CC") or "cc", "cc", "gcc", "clang"]
    for command in map(shlex.split, names):
        if command and shutil.which(command[0]):
            return command
    raise CompileError(f"no C compiler is found, tried {', '.join(dict.fromkeys(names))}")


def _headers() -> list[str]:
    """Find the folders of Python's headers."""
    folders = [sysconfig.get_path(name) for name in ("include", "platinclude")]
    if not Path(folders[0], "Python.h").is_file():
        raise CompileError(f"Python's headers are missing, {folders[0]}/Python.h; Debian has them in python3-dev")
    return [*dict.fromkeys(folders)]


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CompileError(str(error)) from error
    if done.returncode != 0:
        raise CompileError(f"{shlex.join(command)} ended with status {done.returncode}\n{done.stderr}".rstrip())
    sys.stderr.write(done.stderr)  # the compiler's warnings


def main() -> int:
    """Compile the core beside its source."""
    try:
        provide(ROOT / FOLDER / FILE, lambda text: print(text, file=sys.stderr))
    except CompileError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
