"""Starts ranks as processes on this machine (source: MegEngine 1.13.0, ``megengine.distributed.launcher``)."""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import pickle
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import Any, NamedTuple

import torch

from collshim.adapting import devices
from collshim.calls.frames import lines_of
from collshim.environment import forget
from collshim.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    MissingNameError,
    PeerError,
    WorldError,
    also,
    text_of,
)
from collshim.megengine.distributed._membership import joined
from collshim.megengine.distributed._start import start
from collshim.megengine.distributed.server import Server

__all__ = ["launcher"]


class launcher:
    """Runs a function in one forked process per device; each process joins the process group.

    >>> @launcher(n_gpus=2)  # doctest: +SKIP
    ... def train(epochs): ...
    >>> train(3)  # what each rank returned  # doctest: +SKIP

    A call returns a list of the function's results, by device. A rank's result is None if it ended with
    ``sys.exit(0)``, or if the result cannot be pickled. The function may be local; it sees a copy of the caller's
    memory.

    Args:
        func: the function.
        n_gpus: the number of processes to start here; by default one per GPU, or one per core without GPUs.
        world_size: the number of ranks on all machines together; ``n_gpus`` by default.
        rank_start: the rank of the first process here; 0 on the machine that runs the server.
        master_ip: the host of the server.
        port: the server's port; 0 for a free one, which works only on a single machine.
        device_type: see ``init_process_group``.
        backend: see ``init_process_group``.

    Raises:
        AssertionError: ``rank_start`` is passed without ``port``. The call raises it, as ``subprocess 1 exit with code
            1``, if a process ended with a non-zero exit code, which ends the other processes.
        AttributeError: the call raises it if the function uses a name that collshim lacks.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Wrap the function, or if there are only keyword arguments, return a decorator."""
        return super().__new__(cls) if args else functools.partial(cls, **kwargs)

    def __init__(
        self,
        func: Callable[..., Any],
        n_gpus: int | None = None,
        world_size: int | None = None,
        rank_start: int = 0,
        master_ip: str = "localhost",
        port: int = 0,
        device_type: str = "xpu",
        backend: str = "nccl",
    ) -> None:
        if not callable(func):
            raise ArgumentTypeError(f"launcher: func is {func!r}, should be a function")
        self.func = func
        self.n_gpus = n_gpus if n_gpus is not None else _devices()
        self.world_size = world_size if world_size is not None else self.n_gpus
        self.rank_start = rank_start
        self.master_ip = master_ip
        self.port = port
        self.device_type = device_type
        self.backend = backend
        self.server: Server | None = None
        self._calls = 0
        self._serve()

    def _serve(self) -> None:
        if self.rank_start == 0:
            self.server = Server._at(self.master_ip, self.port)
            self.port = self.server.py_server_port
        elif self.port == 0:
            raise also(ArgumentValueError, AssertionError)("you have to assign a port for distributed server")

    def __call__(self, *args: Any, **kwargs: Any) -> list[Any]:
        """Run the function with these arguments in every process, and return a list of the results."""
        if torch.cuda.is_initialized():
            raise WorldError(
                "launcher: this process uses CUDA already, which a forked process cannot: use it in func only"
            )
        self._calls += 1
        children = [self._start(device, args, kwargs) for device in range(self.n_gpus)]
        try:
            return _results(children)
        finally:
            for child in children:
                child.end()
            if self.server is not None:
                self.server._end(self._calls)

    def _start(self, device: int, args: Sequence[Any], kwargs: Mapping[str, Any]) -> _Child:
        own_end, child_end = _fork.Pipe()
        process = _fork.Process(target=self._run, args=(device, args, kwargs, child_end))
        with warnings.catch_warnings():
            # Python 3.12 warns if a process with threads forks; a child needs nothing from the server's thread.
            warnings.simplefilter("ignore", DeprecationWarning)
            process.start()
        child_end.close()
        return _Child(self.rank_start + device, process, own_end)

    def _run(self, device: int, args: Sequence[Any], kwargs: Mapping[str, Any], end: Connection) -> None:
        """Run a rank's process from its start to its end."""
        forget(os.environ)  # the variables of the parent's launcher, such as Slurm or `collshim run`
        torch.set_num_threads(1)  # the threads that the parent computed with do not exist in a forked process
        rank = self.rank_start + device
        place = self.master_ip, self.port, self.world_size, rank, device
        start(*place, self.backend, self.device_type, turn=self._calls)
        joined().machine_ranks = tuple(range(self.rank_start, self.rank_start + self.n_gpus))
        os.environ["NCCL_LAUNCH_MODE"] = "PARALLEL"
        try:
            result = _pickled(rank, self.func(*args, **kwargs))
        except MissingNameError as error:
            end.send_bytes(pickle.dumps(_Missing(str(error), lines_of(error)[:1])))
            sys.exit(1)
        end.send_bytes(result)
        _await_leave(end)


_fork = multiprocessing.get_context("fork")


def _devices() -> int:
    """Return the number of GPUs, real or pretended; if there is at most one, the number of cores."""
    count = devices.count()
    return count if count > 1 else torch.cuda.device_count() or os.cpu_count() or 1


class _Missing(NamedTuple):
    """A name that the adapter lacks, on every rank alike, and the line that uses it; the call raises it once."""

    text: str
    lines: Sequence[str]


class _Child(NamedTuple):
    """A rank's process, and this process's end of the pipe to it."""

    rank: int
    process: ForkProcess
    end_of_pipe: Connection

    def end(self) -> None:
        """End the process, by force if necessary."""
        with contextlib.suppress(OSError):
            self.end_of_pipe.send_bytes(b"leave")
        self.end_of_pipe.close()
        self.process.join(2)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def _results(children: Sequence[_Child]) -> list[Any]:
    results: dict[int, Any] = {}
    while len(results) < len(children):
        children_by_pipe = {child.end_of_pipe: child for child in children if child.rank not in results}
        for pipe in wait(list(children_by_pipe)):
            child = children_by_pipe[pipe]  # type: ignore[index]
            results[child.rank] = _result(child, children)
    return [results[child.rank] for child in children]


def _result(child: _Child, children: Sequence[_Child]) -> Any:
    try:
        result = pickle.loads(child.end_of_pipe.recv_bytes())
        if not isinstance(result, _Missing):
            return result
    except (EOFError, ConnectionError):
        result = None
    child.process.join()
    if child.process.exitcode != 0:
        for other in children:
            other.process.terminate()
        if result is not None:
            line = "".join(f" ({line})" for line in result.lines)
            raise also(MissingNameError, AttributeError)(f"{result.text}{line}")
        raise also(PeerError, AssertionError)(f"subprocess {child.rank} exit with code {child.process.exitcode}")
    warnings.warn(f"launcher: subprocess {child.rank} exited before its function returned", stacklevel=4)
    return None


def _await_leave(end: Connection) -> None:
    """Wait until every rank has returned, because others may still read data from this one."""
    with contextlib.suppress(EOFError, OSError):
        end.recv_bytes()


def _pickled(rank: int, result: Any) -> bytes:
    try:
        return pickle.dumps(result)
    except Exception as error:
        text = f"launcher: the result of rank {rank} cannot be sent, None instead: {text_of(error)}"
        warnings.warn(text, stacklevel=2)
        return pickle.dumps(None)
