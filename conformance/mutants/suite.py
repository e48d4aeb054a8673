"""The suite, run on a copy of the package in a separate process, with a time limit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import Any

_PLUGIN = "collshim.conformance.mutants.plugin"
_ENDING = 5.0
"""Seconds that pytest has to end its ranks after an interrupt."""
_LOOK = 0.1
"""Seconds between two polls of a process."""
_GLOO = {"gloo": "processes", "unchecked gloo": "unchecked"}
"""The transports of the tests that show a fault over gloo."""

_SHOWN = 400
"""The number of characters of the output that are kept."""


class Suite:
    """Runs of the suite, which can be ended together."""

    def __init__(self) -> None:
        self._over = Event()

    def stop(self) -> None:
        """End the current runs, each from its own thread, and later ones as they begin."""
        self._over.set()

    def seen(self, folder: Path, asked: dict[str, Any], seconds: float, tests: Sequence[str] = ()) -> dict[str, Any]:
        """Run the suite on the copy in ``folder``; return its plugin's report and the end of the output.

        Args:
            folder: the folder with the package.
            asked: the request to the plugin. Its transport may be "gloo" or "unchecked gloo", for processes over gloo.
            seconds: the time after which the run is ended.
            tests: the tests below the suite's folder; empty for all.
        """
        report, question = folder / "report.json", folder / "asked.json"
        transport = _GLOO.get(asked["transport"], asked["transport"])
        carrier = "gloo" if asked["transport"] in _GLOO else "auto"
        question.write_text(json.dumps({**asked, "transport": transport, "report": str(report)}), encoding="utf-8")
        suite = [f"collshim/conformance/{test}" for test in tests] or ["collshim/conformance"]
        options = ["-p", _PLUGIN, "--mutant", str(question), "-p", "no:cacheprovider", "-q", "--rootdir", str(folder)]
        output = self._output([sys.executable, "-m", "pytest", *options, *suite], folder, seconds, carrier)
        nothing = {"imported": False, "passed": 0, "test": "", "message": "", "failed": {}}
        found: dict[str, Any] = json.loads(report.read_text(encoding="utf-8")) if report.exists() else nothing
        return {**found, "output": output[-_SHOWN:]}

    def _output(self, command: Sequence[str], folder: Path, seconds: float, carrier: str) -> str:
        own = {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "COLLSHIM_TRANSPORT": carrier}
        environment = {**os.environ, **own}
        with (folder / "output.txt").open("w+", encoding="utf-8") as output:
            process = subprocess.Popen(
                command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
            try:
                self._await(process, seconds)
            finally:
                if process.poll() is None:
                    _end(process)
            output.seek(0)
            return output.read()

    def _await(self, process: subprocess.Popen[bytes], seconds: float) -> None:
        end = time.monotonic() + seconds
        while process.poll() is None and time.monotonic() < end and not self._over.is_set():
            self._over.wait(_LOOK)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and its ranks, which are one process group."""
    os.killpg(process.pid, signal.SIGINT)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_ENDING)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
