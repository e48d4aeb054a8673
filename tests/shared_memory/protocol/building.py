"""Programs in C: a driver over a copy of one of the core's headers, compiled and run within deadlines."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from compile_core import FOLDER, ROOT
from tests.shared_memory.protocol.faults import LATE, RACE, WRONG, Edit

HERE = Path(__file__).parent
SLOTS, PIPES, REDUCTION = "slots.h", "pipes.h", "reduction.h"
THREADS = ("-fsanitize=thread", "-Wno-tsan")  # which knows no fences, and so no order that only a fence makes
WAYS = {0: "", 2: WRONG, 3: LATE, 66: RACE}
"""What the exit statuses of the driver mean; 66 is ThreadSanitizer's."""

_DRIVERS = {SLOTS: "driver.c", PIPES: "pipes_driver.c", REDUCTION: "reductions_driver.c"}
_COMPILE_SECONDS = 120.0
_ENVIRONMENT = {
    "TSAN_OPTIONS": "halt_on_error=1 atexit_sleep_ms=0 report_thread_leaks=0",
    "UBSAN_OPTIONS": "halt_on_error=1",
}


class Stream(NamedTuple):
    """The calls of one run of the driver: see there."""

    size: int
    slots: int
    spins: int
    start: int

    def words(self, calls: int, seconds: float, seed: int) -> list[str]:
        """Return the arguments of the driver."""
        return [str(word) for word in (self.size, calls, self.slots, self.spins, self.start, seconds, seed)]


class Outcome(NamedTuple):
    """How a program ended."""

    status: int
    output: str


def compiler(*names: str) -> list[str]:
    """Return the command of the first compiler that is there; skip the test if none is."""
    for command in map(shlex.split, names or (os.environ.get("CC") or "cc", "gcc", "clang")):
        if shutil.which(command[0]):
            return command
    pytest.skip(f"no C compiler is found, tried {', '.join(names) or 'cc, gcc, clang'}")


def edited(edits: Iterable[Edit], name: str = SLOTS) -> str:
    """Return a header file with edits, each of which must find its text there once."""
    text = (ROOT / FOLDER / name).read_text(encoding="utf-8")
    for edit in edits:
        assert text.count(edit.old) == 1, f"{name} has this {text.count(edit.old)} times: {edit.old}"
        text = text.replace(edit.old, edit.new)
    return text


def build(folder: Path, command: Sequence[str], flags: Sequence[str], text: str, name: str = SLOTS) -> Path:
    """Compile the driver of a header file over a text of that file; return the program."""
    (folder / name).write_text(text, encoding="utf-8")
    target = folder / "driver"
    words = [
        *command,
        "-std=c11",
        "-O1",
        "-g",
        *flags,
        "-pthread",
        f"-I{folder}",
        f"-I{ROOT / FOLDER}",
        str(HERE / _DRIVERS[name]),
        "-o",
        str(target),
    ]
    done = run(words, _COMPILE_SECONDS)
    assert done.status == 0, done.output
    return target


def run(words: Sequence[str], seconds: float, folder: Path | None = None) -> Outcome:
    """Run a program in a folder; it is killed at the deadline."""
    done = subprocess.run(
        words,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=os.environ | _ENVIRONMENT,
        timeout=seconds,
        check=False,
    )
    return Outcome(done.returncode, done.stdout)
