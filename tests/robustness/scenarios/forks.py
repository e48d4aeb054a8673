"""Ranks that fork: the child's error, how it ends, and whether the parent continues."""

from __future__ import annotations

import multiprocessing
import os
import sys
import warnings
from collections.abc import Callable
from functools import partial
from time import monotonic, sleep
from typing import Any

import torch

import collshim
from tests.engine.worlds import attempt, world
from tests.robustness.scenarios.questions import CALLS, answers, enter

PATIENCE = 30.0


def forks(*names: str) -> dict[str, Any]:
    """Return each kind of child's output and exit status; then the result of the parents' next call."""
    comm = world()
    enter()
    for _ in range(3):  # the next one reuses a plan
        comm.all_reduce(torch.ones(3)).wait()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns about a fork with running threads
        found: dict[str, Any] = {name: _said(partial(CHILDREN[name], comm)) for name in names}
        found["multiprocessing"] = _of_multiprocessing()
    found["parent's answers"] = str(answers())
    return found | {"parent": comm.all_reduce(torch.ones(3)).wait().tolist()}


def _alone(call: Callable[[], Any], comm: Any) -> Any:
    return call()


CHILDREN: dict[str, Callable[[Any], Any]] = {
    "a collective": lambda comm: comm.all_gather(torch.ones(3)).wait(),
    "a recalled collective": lambda comm: comm.all_reduce(torch.ones(3)).wait(),
    **{name: partial(_alone, call) for name, call in CALLS.items()},
    "a group": lambda comm: comm.subgroup([0]),
    "answers": lambda comm: answers(),
    "a world of its own": lambda comm: collshim.launch(lambda: world().rank, 2, timeout=PATIENCE),
    "an end that is not by force": lambda comm: sys.exit(0),
}


def _said(call: Callable[[], Any]) -> tuple[str, int | None]:
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(theirs, _outcome(call).encode())
        os._exit(0)
    status = _status(child)
    os.close(theirs)
    os.set_blocking(ours, False)  # its other end may be held by children that other ranks forked meanwhile
    with os.fdopen(ours, "rb") as pipe:
        text = pipe.read() or b""
    return text.decode(), status


def _outcome(call: Callable[[], Any]) -> str:
    try:
        seen = attempt(call)
    except SystemExit:
        sys.exit(0)
    return f"{seen.raised[0]}: {seen.text}" if seen.raised else str(seen.value)


def _status(child: int) -> int | None:
    """Return the exit status, or None if it had to be killed."""
    end = monotonic() + PATIENCE
    while monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return status
        sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return None


def _of_multiprocessing() -> tuple[str, int | None]:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=_tell, args=(theirs,))
    child.start()
    text = ours.recv() if ours.poll(PATIENCE) else "nothing"
    child.join(PATIENCE)
    return text, child.exitcode


def _tell(pipe: Any) -> None:
    pipe.send(_outcome(lambda: world().all_reduce(torch.ones(3)).wait()))
