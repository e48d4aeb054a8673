"""Checks that a user's module can be tested at all: a run without cases must not look like success."""

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
"""The time limit of an import, which includes torch's."""


def find_modules_here() -> None:
    """Let this process and its ranks, which inherit the path, import modules in the working folder."""
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)


def require(subject: Subject, asked: Sequence[Binding], *, allow_missing: bool = False) -> None:
    """Raise an error if the module cannot be imported, or has no function to test.

    Args:
        subject: the subject.
        asked: the functions to test.
        allow_missing: whether to accept a module without any of them, or without the functions that start its ranks.

    Raises:
        ArgumentValueError: the reason, in one line.
    """
    if not asked:
        raise ArgumentValueError("no cases to run: no function of the suite fits the options")
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
        raise ArgumentValueError(f"no cases can be run: {subject.module} has none of {names}")
    paths = {path: placed(subject.prefix, path) for path in asked[0].framework.needs}
    lacking = [path for path in paths.values() if is_missing(path)]
    if lacking:
        there = next(binding for binding in asked if binding not in missing)
        what = f"{placed(subject.prefix, there.path)}, but not {' and '.join(lacking)}"
        raise ArgumentValueError(f"no cases can be run: {subject.module} has {what}, which every case needs")


def _require_backend(name: str, registers: str) -> None:
    lines = [*([f"import {registers}"] if registers else []), "from torch.distributed import Backend"]
    done = _run("\n".join([*lines, "print(*Backend.backend_list[1:])"]))
    known = done.stdout.split()
    if done.returncode == 0 and name.lower() not in known:
        more = f"{registers} registers no other" if registers else "use --import to register another"
        raise ArgumentValueError(f"--backend is {name}, torch.distributed has {', '.join(known)}; {more}")


def _require_import(name: str) -> None:
    if not all(part.isidentifier() for part in name.split(".")):
        raise ArgumentValueError(f"the module is {name!r}, should be a dotted name: mypkg.dist")
    try:
        done = _run(f"import {name}")
    except subprocess.TimeoutExpired as error:
        raise ArgumentValueError(f"{name} cannot be imported: its import takes more than {_SECONDS:g} s") from error
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        reason = lines[-1] if lines else f"it ends the process, exit code {done.returncode}"
        where = next((line.strip() for line in reversed(lines) if line.startswith('  File "')), "")
        looked = f" (looked in {os.getcwd()} and on sys.path)" if reason.startswith("ModuleNotFoundError") else ""
        place = f" ({where})" if where and not looked and "<string>" not in where else ""
        raise ArgumentValueError(f"{name} cannot be imported: {reason}{looked}{place}")


def _run(code: str) -> subprocess.CompletedProcess[str]:
    """Run the code in a separate process, because importing a module may end the process."""
    path = os.pathsep.join(map(os.path.abspath, sys.path))
    return subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
