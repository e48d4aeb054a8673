"""One rank of a run: executes the program's function in a world made as a script would make it, and reports its end."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import torch
from torch.distributed import PrefixStore, Store, TCPStore

import collshim
from collshim.conformance.faults.program import SIZE, Program, read

THREADS, PROCESSES, TORCH, DETAIL = "threads", "processes", "torch", "torch+detail"
FACES = {
    THREADS: "collshim, ranks as threads",
    PROCESSES: "collshim, ranks as processes",
    TORCH: "torch.distributed, gloo",
    DETAIL: "torch.distributed, gloo, TORCH_DISTRIBUTED_DEBUG=DETAIL",
}
"""The ways of running a program."""

OURS = (THREADS, PROCESSES)
_OF_TORCH = (TORCH, DETAIL)
_PARTS = ":"
_REGISTERING = "collshim.torch.distributed"


def face_of(module: str, backend: str, registers: str = "") -> str:
    """Return the way of running a program on another module, over a backend, with the module that registers it."""
    return _PARTS.join([module, backend, registers]).rstrip(_PARTS)


def is_judged(face: str) -> bool:
    """Return whether misses count: torch's own ways of running serve only as a comparison."""
    return face not in _OF_TORCH


PATIENCE = timedelta(seconds=60)
"""How long ranks wait for each other before the program starts."""


class Task(NamedTuple):
    """The work of one process: all ranks as threads, or one rank."""

    face: str
    name: str
    part: str
    deadline: float
    rank: int = 0
    port: int = 0


class Ending(NamedTuple):
    """How the program ended on a rank.

    Attributes:
        error: the name of the exception's class; empty if it returned.
        text: the text of the exception.
        is_reported: whether the library raised it and not the program; with collshim, whether collshim raised it.
        lines: lines of the program in its traceback.
        started, ended: times in seconds of the machine's monotonic clock.
    """

    error: str
    text: str
    is_reported: bool
    lines: tuple[int, ...]
    started: float
    ended: float


Message = tuple[int, Ending | str | None]
"""A rank, with None when the program starts on it, its ending when it has ended, or a text if it never started."""

Send = Callable[[Message], None]


def main(task: Task, end: Connection) -> None:
    """Run one process of a run."""
    _mute()
    torch.set_num_threads(1)
    lock = threading.Lock()

    def send(message: Message) -> None:
        with lock:
            end.send(message)

    try:
        code = _run(task, send)
    except Exception:
        send((task.rank, traceback.format_exc()))
        raise
    atexit._run_exitfuncs()  # a script's end runs them; in some Pythons the end of a multiprocessing child does not
    os._exit(code)


def _run(task: Task, send: Send) -> int:
    program = read(task.name)
    with collshim.options(timeout=task.deadline, **dict.fromkeys(program.options, True)):
        return (_run_threads if task.face == THREADS else _run_process)(task, program, send)


def _mute() -> None:
    """Discard the output of ranks; their errors are sent to the scorer."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout.fileno(), sys.stderr.fileno()):
        os.dup2(nowhere, stream)


def _run_threads(task: Task, program: Program, send: Send) -> int:
    import collshim.torch.distributed as dist

    function = program.function(task.part)

    def rank() -> None:
        number = collshim.current().rank
        dist.init_process_group("gloo", timeout=timedelta(seconds=task.deadline))
        _execute(dist, function, program, task, number, send)

    try:
        collshim.launch(rank, SIZE)
    except collshim.RankError:
        return 1
    return 0


def _run_process(task: Task, program: Program, send: Send) -> int:
    dist, backend = _library(task.face)
    store = TCPStore("127.0.0.1", task.port, is_master=False, timeout=PATIENCE)
    _barrier(store, "forked")
    deadline = timedelta(seconds=task.deadline)
    prefix_store = PrefixStore("world", store)
    dist.init_process_group(backend, store=prefix_store, rank=task.rank, world_size=SIZE, timeout=deadline)
    function = program.function(task.part)
    _barrier(store, "started")  # after the program's imports, which may take seconds
    try:
        _execute(dist, function, program, task, task.rank, send)
    except BaseException as error:  # sent already
        sys.last_value = error  # as the interpreter does for an uncaught exception
        return 1
    return 0


def _library(face: str) -> tuple[Any, str]:
    """Return the module with the functions, and the backend that it is started with."""
    if face == PROCESSES:
        return import_module(_REGISTERING), "gloo"
    if face in _OF_TORCH:
        return _torch(face == DETAIL), "gloo"
    module, backend, *registers = face.split(_PARTS)
    for name in registers or [_REGISTERING] * (backend == "collshim"):
        import_module(name)
    return import_module(module), backend


def _torch(detail: bool) -> Any:
    from torch import distributed

    os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL" if detail else "OFF"
    distributed.set_debug_level_from_env()
    return distributed


def _barrier(store: Store, name: str) -> None:
    if store.add(f"{name}/count", 1) == SIZE:
        store.set(name, "")
    store.wait([name], PATIENCE)


def _execute(dist: Any, function: Callable[[Any], None], program: Program, task: Task, rank: int, send: Send) -> None:
    """Run the function; an exception is sent to the scorer and propagates, as out of a script."""
    send((rank, None))
    start = time.monotonic()
    try:
        function(dist)
    except BaseException as error:
        send((rank, _ending(error, program, task, start)))
        raise
    send((rank, Ending("", "", False, (), start, time.monotonic())))
    if dist.is_initialized():
        dist.destroy_process_group()


def _ending(error: BaseException, program: Program, task: Task, start: float) -> Ending:
    end = time.monotonic()
    frames = traceback.extract_tb(error.__traceback__)
    is_from_library = _is_ours(error) or task.face not in OURS
    is_reported = is_from_library and frames[-1].filename != program.file
    lines = tuple(frame.lineno or 0 for frame in frames if frame.filename == program.file)
    return Ending(type(error).__name__, str(error), is_reported, lines, start, end)


def _is_ours(error: BaseException) -> bool:
    """Return whether collshim raised it; torch's C++ converts an error to a RuntimeError with its class in the text."""
    if isinstance(error, collshim.CollshimError):
        return True
    kinds = (collshim.MismatchError, collshim.DeadlineError, collshim.PeerError, collshim.BrokenCommunicatorError)
    return isinstance(error, RuntimeError) and any(f"{kind.__name__}: " in str(error) for kind in kinds)
