"""One run of a program on some ranks, in a folder of its own, with a deadline; nothing that it started is left."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

from tests.environments import ROOT
from tests.upstream.programs.listing import Program
from tests.upstream.programs.ranks import FIGURES

_MARK = "COLLSHIM_PROGRAM"
"""The variable by which the processes of a run are found: the launcher's ranks are not in its process group."""

_GRACE = 20
"""The seconds that the launcher has to end its ranks after the deadline, and the ranks after the launcher."""


@dataclass(frozen=True)
class RunResult:
    """The end of a run.

    Attributes:
        status: the exit status of the launcher; None if it missed the deadline.
        figures: the lines of figures that the ranks printed, sorted.
        output: all that was printed.
        left: how many processes were left after the launcher ended.
        seconds: how long it took.
    """

    status: int | None
    figures: tuple[str, ...]
    output: str
    left: int
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether it ended with success, and with all of its processes."""
        return self.status == 0 and not self.left


def run(python: Path, program: Program, backend: str, ranks: int, *, stands_in: bool = False) -> RunResult:
    """Run the program over one backend; ``stands_in``: with `collshim run --as torch`."""
    mark, began = uuid.uuid4().hex, time.monotonic()
    with tempfile.TemporaryDirectory(prefix="upstream-programs-", ignore_cleanup_errors=True) as folder:
        starts = ["collshim", "run", "--as", "torch"] if stands_in else ["torch.distributed.run", "--standalone"]
        command = [str(python), "-m", *starts, f"--nproc-per-node={ranks}", *program.launcher]
        command += [*(["--no-prefix"] if stands_in else []), "--module", *program.command(backend)]
        log = Path(folder) / "log"
        environment = {**_environment(folder, mark), **dict(entry.split("=", 1) for entry in program.environment)}
        with log.open("wb") as file:
            launcher = subprocess.Popen(
                command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file
            )
            try:
                status = _wait(launcher, program.seconds)
            finally:
                left = _end(mark)
        output = log.read_text(encoding="utf-8", errors="replace")
    figures = sorted(line for line in output.splitlines() if line.startswith(FIGURES))
    return RunResult(status, tuple(figures), output, left, time.monotonic() - began)


def _environment(folder: str, mark: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("COLLSHIM_", "VIRTUAL_ENV"))}
    places = dict.fromkeys(("TMPDIR", "HOME", "XDG_CACHE_HOME", "TORCHINDUCTOR_CACHE_DIR"), folder)
    offline = dict.fromkeys(("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "ACCELERATE_USE_CPU"), "1")
    lone = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "TP_SOCKET_IFNAME": "lo", "CUDA_VISIBLE_DEVICES": ""}
    return {**kept, **places, **offline, **lone, "PYTHONPATH": str(ROOT), _MARK: mark}


def _wait(launcher: subprocess.Popen[bytes], seconds: float) -> int | None:
    """Return the exit status; None after the deadline, when the launcher ends its ranks and itself."""
    try:
        return launcher.wait(seconds)
    except BaseException as error:
        launcher.terminate()
        try:
            launcher.wait(_GRACE)
        except subprocess.TimeoutExpired:
            launcher.kill()
            launcher.wait()
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        return None


def _end(mark: str) -> int:
    """Kill the processes of the run that are left, and return their number."""
    limit = time.monotonic() + _GRACE
    while (found := _marked(mark)) and time.monotonic() < limit:
        time.sleep(0.2)  # the last ones may be ending
    for process in found:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return len(found)


def _marked(mark: str) -> list[int]:
    entry = f"{_MARK}={mark}".encode()
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit() and entry in _variables(path)]


def _variables(process: Path) -> list[bytes]:
    """Return the environment that the process was started with; none if it is over, or is another user's."""
    try:
        return (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return []
