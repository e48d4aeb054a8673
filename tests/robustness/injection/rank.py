"""One process of a trial: a rank, or all ranks as threads. It reports how each ended, and ends like a script."""

from __future__ import annotations

import atexit
import ctypes
import faulthandler
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import torch

import collshim
from collshim import world
from collshim.calls.site import how_it_failed
from collshim.transports.rendezvous import world as rendezvous
from collshim.world import local_worlds, use
from tests.robustness.injection.deeds import Deed, is_injected
from tests.robustness.injection.stream import Stream, WrongError
from tests.robustness.injection.trial import RAW, Trial

START = 60.0
"""Seconds in which the ranks meet if no fault affects that."""

_PDEATHSIG = 1
_IN_FULL = 8
"""One in this many seeds has processes that end with a full interpreter exit, which takes a second."""

Send = Callable[[str, int, Any], None]


class Place(NamedTuple):
    """A process's data to find the others: the store's port, the file for its output, its machine's network."""

    port: int
    log: str
    folder: str
    namespace: str = ""
    interface: str = ""
    address: str = "127.0.0.1"


class Ending(NamedTuple):
    """The end of a rank's stream.

    Attributes:
        error: the class of its exception; "" if it finished.
        ours: whether the library under trial raised it.
        injected: whether it is the injected one.
        wrong: whether a result was wrong.
        group: the ranks of its last call's group.
        began, ended: when it began its last post or wait, and ended, in seconds of the machine's monotonic clock.
    """

    error: str
    text: str
    ours: bool
    injected: bool
    wrong: bool
    step: int
    group: tuple[int, ...]
    began: float
    ended: float


def main(trial: Trial, rank: int, place: Place, end: Connection) -> None:
    """Run one process of a trial."""
    _settle(place)
    lock = threading.RLock()

    def send(what: str, of: int, value: Any) -> None:
        with lock:
            end.send((what, of, value))

    failed = _run_threads(trial, send) if trial.transport == "threads" else _run_process(trial, rank, place, send)
    if trial.seed % _IN_FULL == 0:
        ctypes.pythonapi.Py_Exit(int(failed))
    atexit._run_exitfuncs()
    os._exit(int(failed))


def _settle(place: Place) -> None:
    """Start a session, which ends with the process that started it, and write to a file."""
    os.setsid()
    libc = ctypes.CDLL(None)
    libc.prctl(_PDEATHSIG, signal.SIGKILL)
    if place.namespace:
        with open(f"/var/run/netns/{place.namespace}") as network:
            libc.setns(network.fileno(), 0)
    log = os.open(place.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.close(log)
    os.environ["TMPDIR"] = place.folder
    if place.interface:
        os.environ["GLOO_SOCKET_IFNAME"] = place.interface
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    torch.set_num_threads(1)
    rendezvous.LEAVE_SECONDS = 1.5  # a dead rank never leaves, and nobody tells the store's server


def _run_process(trial: Trial, rank: int, place: Place, send: Send) -> bool:
    deed = Deed(trial, rank, lambda: send("fault", rank, time.monotonic()))
    meets = trial.fault.subject == "world"
    join = _join_raw if trial.transport == RAW else _join

    def stream() -> Stream:
        comm = join(trial, rank, place, trial.deadline if meets else START)
        if not meets:
            send("started", rank, time.monotonic())
        return Stream(comm, trial.seed)

    if meets:
        send("started", rank, time.monotonic())
    error = _carry_out(trial, rank, stream, deed, send)
    if error is not None:
        sys.last_value = error  # as the interpreter keeps an uncaught exception
    return error is not None


def _join(trial: Trial, rank: int, place: Place, seconds: float) -> Any:
    os.environ.update(
        RANK=str(rank),
        WORLD_SIZE=str(trial.size),
        LOCAL_RANK=str(rank),
        LOCAL_WORLD_SIZE=str(trial.size),
        MASTER_ADDR=place.address,
        MASTER_PORT=str(place.port),
        COLLSHIM_TIMEOUT=str(seconds),
        COLLSHIM_CHECK=str(int(trial.check)),
        TORCHELASTIC_USE_AGENT_STORE=str(trial.agent),
    )
    comm = collshim.current().communicator
    comm.barrier().wait()
    comm.timeout = trial.deadline
    if world._Process.shared is not None:
        world._Process.shared.timeout = trial.deadline
    return comm


def _join_raw(trial: Trial, rank: int, place: Place, seconds: float) -> Any:
    from tests.robustness.injection.raw import join_world

    serves = rank == 0 and not trial.agent
    comm = join_world(rank, trial.size, place.address, place.port, serves=serves, seconds=trial.deadline)
    comm.barrier().wait()
    return comm


def _run_threads(trial: Trial, send: Send) -> bool:
    """Run the victim in the main thread, which receives signals."""
    with collshim.options(timeout=trial.deadline):
        worlds = local_worlds(trial.size)

    def run(rank: int) -> None:
        with use(worlds[rank]), torch.autograd.set_multithreading_enabled(False):
            deed = Deed(trial, rank, lambda: send("fault", rank, time.monotonic()))
            send("started", rank, time.monotonic())
            error = _carry_out(trial, rank, lambda: Stream(worlds[rank].communicator, trial.seed), deed, send)
        worlds.leave(rank, "has returned from its function" if error is None else how_it_failed(error))

    others = [rank for rank in range(trial.size) if rank != trial.victim]
    threads = [threading.Thread(target=run, args=(rank,), name=f"rank {rank}", daemon=True) for rank in others]
    for thread in threads:
        thread.start()
    run(trial.victim)
    for thread in threads:
        thread.join()
    worlds.close()
    return False


def _carry_out(trial: Trial, rank: int, made: Callable[[], Stream], deed: Deed, send: Send) -> BaseException | None:
    """Run the stream, and return its exception after reporting it to the supervisor."""
    began, stream = time.monotonic(), None
    try:
        stream = made()
        _follow(stream, trial, deed)
        deed.over()
        error = None
    except BaseException as raised:
        ended, error = time.monotonic(), raised
    else:
        ended = time.monotonic()
    try:
        deed.over()
    except BaseException as raised:  # thrown as the stream ended
        error = error or raised
    send("ended", rank, _ending(trial, error, stream, began, ended))
    return error


def _follow(stream: Stream, trial: Trial, deed: Deed) -> None:
    for number, step in enumerate(trial.steps()):
        deed.before(number, step)
        started = stream.post(step)
        deed.between(number)
        deed.wait(lambda: stream.finish(step, started))  # noqa: B023  # called at once


def _ending(trial: Trial, error: BaseException | None, stream: Stream | None, began: float, ended: float) -> Ending:
    step, group = -1, tuple(range(trial.size))
    if stream is not None:
        step, group, began = stream.number, stream.group, stream.began
    if error is None:
        return Ending("", "", False, False, False, step, group, began, ended)
    injected = is_injected(error, trial.detail)
    wrong = isinstance(error, WrongError)
    ours = isinstance(error, collshim.CollshimError) or (
        trial.transport == RAW and isinstance(error, RuntimeError | ValueError) and not injected
    )
    text = str(error) + ("" if error.__cause__ is None else f" <- {type(error.__cause__).__name__}")
    return Ending(type(error).__name__, text, ours, injected, wrong, step, group, began, ended)
