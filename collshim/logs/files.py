"""The file in which a rank keeps its calls, in the folder ``COLLSHIM_LOG_DIR``: one JSON object a line.

Each line reaches the operating system before the call goes on, so a process that is killed leaves all of them. No file
is ever replaced or continued by another process: its name has the rank, the time and the process. The worlds that one
process makes one after another are told apart by their ``run``.
"""

from __future__ import annotations

import json
import os
import shlex
import socket
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import Any

from collshim.errors import ArgumentValueError
from collshim.log import warn_once

VARIABLE = "COLLSHIM_LOG_DIR"
SUFFIX = ".jsonl"


class CallFile:
    """A file, written by whole lines.

    Attributes:
        path: its place.
    """

    def __init__(self, folder: Path, rank: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        start, number, name = time.strftime("%Y%m%d-%H%M%S"), os.getpid(), f"rank{rank}"
        while True:
            self.path = folder / f"{name}-{start}-{number}{SUFFIX}"
            try:
                self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o666)
                break
            except FileExistsError:  # of a process on another machine
                number += 1
        self._is_full = False
        weakref.finalize(self, os.close, self._file).atexit = False

    def write(self, record: dict[str, Any]) -> None:
        """Add a line; if that fails, as on a full disk, warn once and write no more: the program goes on."""
        if self._is_full:
            return
        try:
            os.write(self._file, f"{json.dumps(record)}\n".encode())  # in one piece, whichever threads write
        except OSError as error:
            self._is_full = True
            warn_once("the log %s ends here: %s", self.path, error)


class RankLog:
    """The log of one rank in one world.

    Args:
        file: that of the rank; a later world of its process continues it.
        run: the name of the world, the same on all its ranks and no other world's.
    """

    def __init__(self, file: CallFile, run: str, rank: int, size: int) -> None:
        self._file, self._run = file, run
        where = {"host": socket.gethostname(), "pid": os.getpid(), "command": sys.argv}
        self.write("world", rank=rank, size=size, **where)

    def write(self, event: str, **facts: Any) -> None:
        """Add an event, with its time."""
        self._file.write({"event": event, "time": round(time.time(), 6), "run": self._run, **facts})


_files: dict[int, CallFile] = {}
"""This process's files, by rank."""

_opening = [threading.Lock()]


def _begin_anew() -> None:
    """Forget a parent's files, and its lock, which another of its threads may have held when it forked."""
    _files.clear()
    _opening[0] = threading.Lock()


os.register_at_fork(after_in_child=_begin_anew)


def rank_file(rank: int) -> CallFile | None:
    """Return a rank's file, made if this process has none yet; None if nobody asked for files.

    Raises:
        ArgumentValueError: it cannot be made.
    """
    folder = os.environ.get(VARIABLE, "")
    if not folder:
        return None
    place = Path(folder).absolute()
    with _opening[0]:
        known = _files.get(rank)
        if known is not None and known.path.parent == place and known.path.exists():  # a user may empty the folder
            return known
        try:
            _files[rank] = CallFile(place, rank)
        except OSError as error:
            text = f"{VARIABLE} is {folder!r}, where rank {rank} cannot write ({error.strerror or error})"
            raise ArgumentValueError(f"{text}, should be a folder; it is made if it is not there") from error
        return _files[rank]


def rank_log(file: CallFile | None, run: str, rank: int, size: int) -> RankLog | None:
    """Return the log of a rank of a new world; None without a file."""
    return None if file is None else RankLog(file, run, rank, size)


def how_to_read() -> str:
    """Return the command that shows the ranks' calls, for the end of a failure's text; empty without files here."""
    folder = os.environ.get(VARIABLE, "")
    has_files = folder and next(Path(folder).glob(f"rank*{SUFFIX}"), None) is not None
    return f"the ranks' calls: collshim log {shlex.quote(folder)}" if has_files else ""
