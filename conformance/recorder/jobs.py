"""Ranks of the real framework, which answer one call after the other and are restarted if a call ends them.

A rank runs ``answer``: it reads calls from a file in order and appends each answer to the rank's own file. The
recorder runs ``record``: it starts the ranks, waits, and continues in new ranks after a call that hung, ended a rank,
or left the world unusable.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import Any

from collshim.conformance.recorder.asked import Asked
from collshim.conformance.recorder.dialects import Dialect, dialect
from collshim.conformance.recorder.performing import Answer, perform

STILL_SECONDS = 25.0  # without an answer, after the first
START_SECONDS = 120.0  # until the first answer
_POLL_SECONDS = 0.1


def answer(framework: str, folder: Path) -> None:
    """Answer every call of the job in ``folder``, one line each, on one rank."""
    speaks = dialect(framework)
    rank, _ = speaks.place()
    calls = [Asked.from_json(json.loads(line)) for line in (folder / "calls.jsonl").read_text().splitlines()]
    names = speaks.enter("", calls[0], rank)
    with (folder / f"answers.{rank}.jsonl").open("w") as file:
        for asked in calls:
            file.write(json.dumps(perform(asked, rank, names, speaks.arrays)) + "\n")
            file.flush()
    while folder.exists():  # a rank that leaves would end its peers too
        sleep(_POLL_SECONDS)
    os._exit(0)  # skip what a framework does on exit


class Job:
    """The ranks of one world; they are ended on leaving the block."""

    def __init__(self, framework: str, calls: Sequence[Asked], python: str, script: Path) -> None:
        self._framework, self._calls = framework, calls
        self._python, self._script = python, script
        self._folder = TemporaryDirectory(prefix="recording")
        self.folder = Path(self._folder.name)
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Job:
        lines = [json.dumps(asked.as_json()) for asked in self._calls]
        (self.folder / "calls.jsonl").write_text("\n".join(lines))
        first = self._calls[0]
        started = dialect(self._framework).command(self._python, first.size, first.world, free_port(), self.folder)
        self.ranks = first.processes
        for one in started:
            self._start(
                [*one.before, str(self._script), self._framework, "--answer", str(self.folder)], one.environment
            )
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            process.wait()
        self._folder.cleanup()

    def _start(self, command: list[str], environment: dict[str, str]) -> None:
        with (self.folder / f"log.{len(self._processes)}").open("wb") as log:
            self._processes.append(
                subprocess.Popen(
                    command,
                    env=os.environ | environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    cwd=self.folder,
                    start_new_session=True,
                )
            )

    def answers(self) -> list[list[Answer]]:
        """Return each rank's answers so far, in order."""
        return [self._read(self.folder / f"answers.{rank}.jsonl") for rank in range(self.ranks)]

    def log(self) -> str:
        """Return the end of the ranks' output."""
        files = sorted(path for path in self.folder.rglob("*log*") if path.is_file())
        return "\n".join(path.read_text(errors="replace")[-3000:] for path in files)

    def entered(self) -> bool:
        """Return whether any rank has started to answer."""
        return any(self.folder.glob("answers.*"))

    def wait(self) -> tuple[list[list[Answer]], str]:
        """Return the answers when no more are expected, and how the job ended: "", "hung" or "died"."""
        counts: list[int] = []
        still = monotonic() + START_SECONDS
        while True:
            there = self.answers()
            if min(map(len, there)) == len(self._calls):
                return there, ""
            if [len(one) for one in there] != counts:
                counts = [len(one) for one in there]
                still = monotonic() + (STILL_SECONDS if sum(counts) else START_SECONDS)
            if self._ended():
                sleep(1.0)  # for the last writes
                there = self.answers()
                return there, "" if min(map(len, there)) == len(self._calls) else "died"
            if monotonic() > still:
                return there, "hung"
            sleep(_POLL_SECONDS)

    def _ended(self) -> bool:
        """Return whether a process has ended unexpectedly."""
        codes = [process.poll() for process in self._processes]
        return any(code not in (None, 0) for code in codes) or all(code is not None for code in codes)

    def _read(self, path: Path) -> list[Answer]:
        if not path.exists():
            return []
        return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


def record(
    framework: str, calls: Sequence[Asked], python: str, script: Path, tell: Callable[[str], object]
) -> list[tuple[Asked, list[Answer]]]:
    """Return each call with every rank's answer; all calls belong to one world."""
    found: list[tuple[Asked, list[Answer]]] = []
    waiting = list(calls)
    while waiting:
        batch = _batch(waiting)
        with Job(framework, batch, python, script) as job:
            there, ended = job.wait()
            log = "" if job.entered() else job.log()
        answered = _settle(dialect(framework), batch, there, ended)
        if log:
            raise RuntimeError(f"no rank of {framework} started to answer {batch[0].id} ({ended}):\n{log}")
        found += answered
        waiting = waiting[len(answered) :]
        tell(f"{len(found)}/{len(calls)} {framework} {calls[0].world}{calls[0].size} {ended and answered[-1][0].id}")
    return found


def _batch(waiting: list[Asked]) -> list[Asked]:
    """Return the next calls that one world can answer: one that runs alone, or all before the next of these."""
    if waiting[0].alone:
        return waiting[:1]
    end = next((index for index, asked in enumerate(waiting) if asked.alone), len(waiting))
    return waiting[:end]


def _settle(
    speaks: Dialect, batch: Sequence[Asked], there: list[list[Answer]], ended: str
) -> list[tuple[Asked, list[Answer]]]:
    """Return the calls that count as answered: up to the first after which the world may be unusable."""
    found = []
    for index, asked in enumerate(batch):
        answers = [marked(speaks, asked, one[index]) if index < len(one) else {"ended": ended} for one in there]
        found.append((asked, answers))
        if any("ended" in one or ("raised" in one and speaks.leaves_unusable(one["raised"])) for one in answers):
            break
    return found


def marked(speaks: Dialect, asked: Asked, answer: Answer) -> Answer:
    """Return ``answer``, marked if its exception concerns the backend or another rank."""
    text = f"{answer.get('raised', [''])[0]}: {answer.get('text', '')}"
    marks = {"limit": speaks.limits, "consequence": speaks.consequences}
    awaited = asked.match and asked.match in text
    found = {mark: True for mark, pattern in marks.items() if pattern and not awaited and re.search(pattern, text)}
    return {**answer, **found} if "raised" in answer else answer


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def this_python() -> dict[str, Any]:
    """Return the description of the recording interpreter."""
    import numpy as np

    return {"python": sys.version.split()[0], "numpy": np.__version__}
