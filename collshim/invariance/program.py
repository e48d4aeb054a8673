"""Runs a step on one or several ranks, and returns their records."""

from __future__ import annotations

import copy
import importlib
import importlib.util
import os
import pickle
import random
import runpy
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import collshim
from collshim.errors import ArgumentValueError, text_of
from collshim.invariance.own_random import own_random_numbers
from collshim.invariance.recorder import EnoughStepsError, Recorder
from collshim.invariance.records import RankRecord
from collshim.invariance.replacing import replaced
from collshim.launching import descendants
from collshim.testing.group import default_group

_GRACE = 2.0
"""Seconds that a process started by a script has to end after it was asked to; then it is killed."""

NO_BATCH = "no batch"
"""Stands for the batch of a step without an argument."""


@dataclass(frozen=True)
class Switches:
    """The settings that all runs share.

    Attributes:
        seed: the seed of torch, NumPy and Python on every rank.
        keeps_dropout: whether dropout is left on.
        kind: "threads"; "processes", which share no state; or "auto", which uses threads, and processes if the program
            is a script or threads do not compute the same.
        steps: the number of the optimizer's steps after which a script ends.
        timeout: seconds that one run may take.
    """

    seed: int = 0
    keeps_dropout: bool = False
    kind: str = "auto"
    steps: int = 1
    timeout: float = 120.0


@dataclass(frozen=True)
class Program:
    """A step that is run on several ranks.

    Attributes:
        name: the program's name in the report.
        step: the function; None if it has to be imported by ``path`` and ``function``.
        path: the file or the module that contains the function, or the script.
        function: the function's name; "" for a script.
        batch: the global batch, pickled; None if the step has no argument.
        arguments: the command-line arguments of a script.
    """

    name: str
    step: Callable[..., Any] | None = None
    path: str = ""
    function: str = ""
    batch: bytes | None = None
    arguments: tuple[str, ...] = ()

    @property
    def is_script(self) -> bool:
        """Whether the program is a script, whose code runs from start to end."""
        return not self.function and self.step is None

    @property
    def can_be_sent(self) -> bool:
        """Whether another process can import the program."""
        if self.step is None:
            return True
        module = sys.modules.get(getattr(self.step, "__module__", ""))
        name = getattr(self.step, "__qualname__", "<locals>")
        return "<locals>" not in name and module is not None and module.__name__ != "__main__"

    @classmethod
    def found(cls, target: str, batch: str = "", arguments: Sequence[str] = (), seed: int = 0) -> Program:
        """Return the program that a command names: ``module:step``, ``path.py:step``, or the path of a script.

        Raises:
            ArgumentValueError: there is no such program.
        """
        path, _, function = target.rpartition(":") if ":" in target else (target, "", "")
        if not function and not path.endswith(".py"):
            raise ArgumentValueError(f"{target!r} is not module:function, path.py:function or script path.py")
        program = cls(target, path=path, function=function, arguments=tuple(arguments))
        if not function:
            return program
        set_seeds(seed)
        with redirect_stdout(sys.stderr):
            found = _loaded(path)
        if not callable(getattr(found, function, None)):
            raise ArgumentValueError(f"{path} has no function {function!r}")
        value = getattr(found, batch or "batch", NO_BATCH)
        if batch and value is NO_BATCH:
            raise ArgumentValueError(f"{path} has no {batch!r}")
        with redirect_stdout(sys.stderr):
            value = value() if callable(value) else value
        return program if value is NO_BATCH else replace(program, batch=packed(value))

    def run(self) -> Any:
        """Run the program on this rank, and return the result of the step; None for a script."""
        if self.is_script:
            with _as_command([self.path, *self.arguments]):
                runpy.run_path(self.path, run_name="__main__")
            return None
        step = self.step or getattr(load(self.path), self.function)
        return step() if self.batch is None else step(pickle.loads(self.batch))


def packed(batch: Any) -> bytes:
    """Return a batch, pickled to be sent to the ranks.

    Raises:
        ArgumentValueError: the batch cannot be pickled.
    """
    try:
        return pickle.dumps(batch)
    except Exception as error:  # a class may raise anything
        raise ArgumentValueError(f"the batch cannot be pickled: {text_of(error)}") from error


def _loaded(path: str) -> Any:
    """Import a module that a command names, and return it."""
    try:
        return load(path)
    except ArgumentValueError:
        raise
    except Exception as error:  # a module may raise anything
        raise ArgumentValueError(f"{path} cannot be imported: {text_of(error)}") from error


def load(path: str) -> Any:
    """Import a module by its name or its file; a file's folder is put first in ``sys.path``."""
    if not path.endswith(".py"):
        return importlib.import_module(path)
    file = Path(path).resolve()
    if not file.exists():
        raise ArgumentValueError(f"there is no file {path}")
    known = sys.modules.get(file.stem)
    if known is not None and getattr(known, "__file__", None) == str(file):
        return known
    if str(file.parent) not in sys.path:
        sys.path.insert(0, str(file.parent))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise ArgumentValueError(f"{path} cannot be imported")
    module = sys.modules[file.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def _as_command(words: list[str]) -> Iterator[None]:
    kept, sys.argv = sys.argv, words
    try:
        yield
    finally:
        sys.argv = kept


def set_seeds(seed: int) -> None:
    """Seed the generators of torch, NumPy and Python."""
    torch.manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002  # the legacy generator is what programs use
    random.seed(seed)


@dataclass(frozen=True)
class Task:
    """The settings of one run.

    Attributes:
        traces: whether to keep the results of all operations, up to the optimizer's first step or ``to_end``.
        values: initial values that replace the program's own, by rank and then by the parameter's number.
        folder: the working directory.
    """

    program: Program
    switches: Switches
    traces: bool = False
    to_end: bool = False
    values: Sequence[dict[int, Tensor]] = ()
    path: list[str] = field(default_factory=lambda: list(sys.path))
    folder: str = field(default_factory=os.getcwd)


def run(
    program: Program,
    size: int,
    switches: Switches,
    *,
    traces: bool = False,
    to_end: bool = False,
    values: Sequence[dict[int, Tensor]] = (),
) -> list[RankRecord]:
    """Run a program on ``size`` ranks, and return their records; its standard output goes to standard error.

    Raises:
        RankError: the program failed on a rank.
    """
    task = Task(program, switches, traces, to_end, values)
    if switches.kind == "threads":
        with redirect_stdout(sys.stderr):
            return collshim.launch(lambda: _on_rank(copy.deepcopy(task)), size, timeout=switches.timeout)
    return collshim.launch(
        _in_process, size, ranks="processes", args=(sys.path, pickle.dumps(task)), timeout=switches.timeout
    )


def _in_process(path: list[str], packed: bytes) -> RankRecord:
    sys.path[:] = path
    task: Task = pickle.loads(packed)
    os.chdir(task.folder)
    torch.set_num_threads(1)
    with redirect_stdout(sys.stderr):
        try:
            return _on_rank(task)
        finally:
            if task.program.is_script:  # it may have been stopped before it ended its own processes
                descendants.end(descendants.descendants(os.getpid()), _GRACE)


def _on_rank(task: Task) -> RankRecord:
    switches, rank = task.switches, collshim.current().rank
    recorder = Recorder(
        traces=task.traces,
        to_end=task.to_end,
        keeps_dropout=switches.keeps_dropout,
        values=task.values[rank] if task.values else None,
        steps=switches.steps if task.program.is_script else None,
    )
    with ExitStack() as stack:
        if switches.kind == "threads":
            stack.enter_context(own_random_numbers())
        stack.enter_context(recorder.recording())
        set_seeds(switches.seed)
        stack.enter_context(_default_group())
        returned = None
        try:
            with suppress(EnoughStepsError):
                returned = task.program.run()
        except SystemExit as end:
            if end.code not in (0, None):
                raise
        return recorder.finish(returned)


_made = threading.local()
"""Has the attribute ``is_made`` if this thread's rank has the default group of the run."""


@contextmanager
def _default_group() -> Iterator[None]:
    """Give torch.distributed a default group; the program's own calls that make or destroy it have no effect."""
    with ExitStack() as stack:
        for name in ("init_process_group", "destroy_process_group"):
            stack.enter_context(replaced(torch.distributed, name, _unless_made))
        stack.enter_context(default_group())
        stack.callback(vars(_made).clear)
        _made.is_made = True
        yield


def _unless_made(original: Any, group: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Do nothing if the call is about the default group and the run provides it; else call ``original``."""
    if hasattr(_made, "is_made") and (group is None or isinstance(group, str) or not args):
        return None
    return original(group, *args, **kwargs)
