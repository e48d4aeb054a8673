"""Whether somebody's module can be asked at all: a run that asks nothing must not look like one that agrees."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

from collshim import ArgumentValueError
from collshim.conformance.bindings.binding import Binding
from collshim.conformance.bindings.rank_context import placed
from collshim.conformance.missing import is_missing
from collshim.conformance.subject import Subject

_SECONDS = 120.0
"""For an import, torch's among it."""


def find_modules_here() -> None:
    """Let modules of the working folder be found, as with ``python -m``; by the ranks too, which are given the path."""
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)


def require(subject: Subject, asked: Sequence[Binding], *, allow_missing: bool = False) -> None:
    """Refuse to begin where the module cannot be imported, or has nothing to ask.

    Args:
        subject: what is to be asked.
        asked: through which functions.
        allow_missing: whether a module without any of them, or without what starts its ranks, is asked all the same.

    Raises:
        ArgumentValueError: with what is wrong, in one line.
    """
    if not asked:
        raise ArgumentValueError("nothing is asked: no function of the suite fits what was chosen")
    if not subject.module:
        return
    for name in filter(None, (subject.module, subject.registers)):
        _require_import(name)
    if subject.backend and subject.module == "torch.distributed":
        _require_backend(subject.backend, subject.registers)
    missing = [binding for binding in asked if is_missing(placed(subject.prefix, binding.path))]
    if allow_missing:
        return
    if len(missing) == len(asked):
        names = ", ".join(sorted({placed(subject.prefix, binding.path) for binding in asked}))
        raise ArgumentValueError(f"nothing can be asked: {subject.module} has none of {names}")
    paths = {path: placed(subject.prefix, path) for path in asked[0].framework.needs}
    lacking = [path for path in paths.values() if is_missing(path)]
    if lacking:
        there = next(binding for binding in asked if binding not in missing)
        what = f"{placed(subject.prefix, there.path)}, but not {' and '.join(lacking)}"
        raise ArgumentValueError(f"nothing can be asked: {subject.module} has {what}, which every case needs")


def _require_backend(name: str, registers: str) -> None:
    lines = [*([f"import {registers}"] if registers else []), "from torch.distributed import Backend"]
    done = _run("\n".join([*lines, "print(*Backend.backend_list[1:])"]))
    known = done.stdout.split()
    if done.returncode == 0 and name.lower() not in known:
        more = f"{registers} registers no other" if registers else "--import names what registers another"
        raise ArgumentValueError(f"--backend is {name}, torch.distributed has {', '.join(known)}; {more}")


def _require_import(name: str) -> None:
    if not all(part.isidentifier() for part in name.split(".")):
        raise ArgumentValueError(f"the module is {name!r}, should be a dotted name: mypkg.dist")
    try:
        done = _run(f"import {name}")
    except subprocess.TimeoutExpired as error:
        raise ArgumentValueError(f"{name} cannot be imported: that takes more than {_SECONDS:g} s") from error
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        told = lines[-1] if lines else f"it ends the process, exit code {done.returncode}"
        where = next((line.strip() for line in reversed(lines) if line.startswith('  File "')), "")
        looked = f" (looked in {os.getcwd()} and on sys.path)" if told.startswith("ModuleNotFoundError") else ""
        place = f" ({where})" if where and not looked and "<string>" not in where else ""
        raise ArgumentValueError(f"{name} cannot be imported: {told}{looked}{place}")


def _run(code: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own: a module may end the one that imports it."""
    path = os.pathsep.join(map(os.path.abspath, sys.path))
    return subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
