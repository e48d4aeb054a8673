"""Ranks that are started as a launcher starts them: a script each, with torchrun's variables."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import NamedTuple

import collshim

END_SECONDS = 60.0
_LAUNCHERS = ("RANK", "WORLD_", "LOCAL_", "MASTER_", "TF_CONFIG", "MS_", "OMPI_", "PMI_", "SLURM_", "TORCHELASTIC_")
ROOT = str(Path(collshim.__file__).parent.parent)


class Ended(NamedTuple):
    """A process's exit code, None where it had to be killed, and what it wrote."""

    code: int | None
    out: str
    errors: str


def environment(**more: str) -> dict[str, str]:
    """This process's, with the checkout in the path and no launcher's word in it."""
    path = os.pathsep.join(filter(None, (ROOT, os.environ.get("PYTHONPATH"))))
    kept = {
        name: text for name, text in os.environ.items() if not name.startswith(("RANK", "WORLD_", "MASTER_", "TF_"))
    }
    return kept | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "COLLSHIM_TIMEOUT": "30"} | more


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@contextmanager
def ranks(source: str, size: int, **told: str) -> Iterator[list[subprocess.Popen[str]]]:
    """``size`` processes that run ``source``, each a rank, with more variables; killed at the end if they still run."""
    port = str(free_port())
    started = [one(source, **_told(rank, size, port), **told) for rank in range(size)]
    try:
        yield started
    finally:
        for process in started:
            process.kill()
            process.communicate()


def one(source: str, **told: str) -> subprocess.Popen[str]:
    """A Python process that runs ``source``, in a session of its own as a terminal's job is."""
    return subprocess.Popen(
        [sys.executable, "-c", source],
        env=environment(**told),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def ended(processes: Sequence[subprocess.Popen[str]]) -> list[Ended]:
    """How they ended, within a minute."""
    limit = monotonic() + END_SECONDS
    return [_ended(process, max(0.1, limit - monotonic())) for process in processes]


def read_line(process: subprocess.Popen[str]) -> str:
    """The next line that it writes; it must write one, or end."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def group_is_gone(group: int) -> bool:
    """Whether no process of a session is left, within ten seconds."""
    limit = monotonic() + 10
    while monotonic() < limit:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        sleep(0.05)
    return False


def _told(rank: int, size: int, port: str) -> dict[str, str]:
    own = {"RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(size)}
    return own | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}


def _ended(process: subprocess.Popen[str], seconds: float) -> Ended:
    try:
        out, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        out, errors = process.communicate()
        return Ended(None, out, errors)
    return Ended(process.returncode, out, errors)
