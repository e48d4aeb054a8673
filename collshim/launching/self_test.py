"""``collshim test``: run the collectives between threads and between processes of this machine, and say what works.

Every rank compares every result with a result that it computes alone. The test takes some ten seconds, and needs only
collshim.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch

import collshim
from collshim.accelerator import ACCELERATOR, BACKEND, module
from collshim.communicator import Communicator
from collshim.errors import CollshimError, MismatchError, WorldError, described
from collshim.messages import Recv, Send
from collshim.settings import options

_LIMIT = 60.0
"""How many seconds a trial may take."""

_SIZES = (3, 300_000)
"""The numbers of elements per rank: for a small call, and for one whose data ranks read from each other's memory."""


class _SelfTestError(Exception):
    """A collective's result differs from the one that this rank computed, or ``collshim run`` failed."""


class Trial(NamedTuple):
    """A part of the test.

    Attributes:
        name: its name in the report.
        run: a function that runs it, and returns what it did.
        may_lack: whether collshim works without it if this machine does not allow it.
    """

    name: str
    run: Callable[[], str]
    may_lack: bool = False


def start() -> int:
    """Run all trials, print a line for each and a summary; return the exit code."""
    begun = time.monotonic()
    works: list[str] = []
    lacks: list[str] = []
    fails: list[str] = []
    for trial in trials():
        before = time.monotonic()
        try:
            text, found = trial.run(), works
        except Exception as error:
            lacking = trial.may_lack and isinstance(error.__cause__ or error, WorldError)
            text, found = _shown(error), lacks if lacking else fails
        found.append(trial.name)
        word = "ok" if found is works else "not here" if found is lacks else "FAILED"
        print(f"{trial.name:<28} {word:<9} {time.monotonic() - before:4.1f} s  {text}", flush=True)
    print("\n" + _verdict(works, lacks, fails, time.monotonic() - begun))
    return 1 if fails else 0


def trials() -> Iterator[Trial]:
    """Yield the trials that this machine allows."""
    yield Trial("threads", partial(_between, 4, "threads", "auto", "cpu"))
    yield Trial(
        "processes over shared memory", partial(_between, 2, "processes", "shared_memory", "cpu"), may_lack=True
    )
    yield Trial("processes over gloo", partial(_between, 2, "processes", "gloo", "cpu"))
    count = module().device_count() if module().is_available() else 0
    if count:
        yield Trial(f"threads on one {ACCELERATOR}", partial(_between, 2, "threads", "auto", f"{ACCELERATOR}:0"))
    if count > 1:
        yield Trial(f"processes over {BACKEND}", partial(_between, min(count, 4), "processes", "auto", ACCELERATOR))
    yield Trial("collshim run", _command)


def _between(size: int, ranks: str, transport: str, device: str) -> str:
    with options(transport=transport, check=True):
        counts = collshim.launch(exchange, size, ranks=ranks, args=(device,), timeout=_LIMIT)
    return f"{counts[0]} calls on each of {size} ranks"


def _command() -> str:
    """Run this module as the ranks of ``collshim run``."""
    words = [sys.executable, "-m", "collshim", "run", "-n", "2", "-m", __name__]
    variables = os.environ | {"COLLSHIM_CHECK": "1"}
    done = subprocess.run(words, env=variables, capture_output=True, text=True, timeout=_LIMIT, check=False)
    if done.returncode != 0:
        raise _SelfTestError(f"exit code {done.returncode}:\n{(done.stdout + done.stderr).strip()}")
    return f"{done.stdout.split()[-1]} calls on each of 2 ranks"


def _shown(error: Exception) -> str:
    """Return a failure's text, with the lines after the first indented."""
    text = str(error) if isinstance(error, CollshimError | _SelfTestError) else described(error)
    return text.replace("\n", "\n    ")


def _verdict(works: list[str], lacks: list[str], fails: list[str], seconds: float) -> str:
    if fails:
        return f"collshim does not work on this machine with {', '.join(fails)}: see above. {seconds:.0f} s"
    without = f"; without {', '.join(lacks)}: processes use gloo, which is slower" if lacks else ""
    return f"collshim {collshim.__version__} works on this machine: {', '.join(works)}{without}. {seconds:.0f} s"


def exchange(device: str) -> int:
    """Run every collective on this rank, and compare the results; return the number of calls."""
    world = collshim.current()
    if device == ACCELERATOR:
        device = f"{ACCELERATOR}:{world.local_rank}"
    return try_collectives(world.communicator, device)


def try_collectives(comm: Communicator, device: str) -> int:
    """Run every collective on a device, and compare the results; return the number of calls."""
    count = 0
    for size in _SIZES:
        for name, call, expected in _cases(comm, size, device):
            _compare(name, call(), expected, comm.rank)
            count += 1
    _compare("NumPy all_reduce", comm.all_reduce(np.arange(3)).wait(), torch.arange(3) * comm.size, comm.rank)
    _compare_gradient(comm, device)
    _require_error(comm, device)
    comm.barrier().wait()
    return count + 4


def _cases(comm: Communicator, count: int, device: str) -> Iterator[tuple[str, Callable[[], Any], Any]]:
    """Yield the collectives on arrays of ``count`` elements: a name, the call, and this rank's expected result."""
    rank, size = comm.rank, comm.size
    all_of = [torch.arange(count, device=device) + 1000 * other for other in range(size)]
    parts_of = [[own + 10 * to for to in range(size)] for own in all_of]
    x, root, last = all_of[rank], size - 1, rank == size - 1
    total, joined = torch.stack(all_of).sum(0), torch.stack(all_of)
    mine = [sent[rank] for sent in parts_of]
    yield "all_reduce", lambda: comm.all_reduce(x).wait(), total
    yield "all_reduce of float32", lambda: comm.all_reduce(x.float(), "max").wait(), all_of[-1].float()
    yield "reduce", lambda: comm.reduce(x, root).wait(), total if last else None
    yield "broadcast", lambda: comm.broadcast(x, root).wait(), all_of[root]
    yield "all_gather", lambda: comm.all_gather(x).wait(), joined
    yield "gather", lambda: comm.gather(x, root).wait(), joined if last else None
    given = parts_of[root] if last else None
    yield "scatter", lambda: comm.scatter(given, root, like=x).wait(), mine[root]
    yield "reduce_scatter", lambda: comm.reduce_scatter(parts_of[rank]).wait(), torch.stack(mine).sum(0)
    yield "all_to_all", lambda: comm.all_to_all(parts_of[rank]).wait(), mine
    yield "send and recv in a batch", lambda: _around(comm, x), all_of[rank - 1]


def _around(comm: Communicator, x: torch.Tensor) -> torch.Tensor:
    """Send to the next rank and receive from the previous one together: over NCCL, one would wait for the other."""
    posted = comm.batch([Send(x, (comm.rank + 1) % comm.size), Recv((comm.rank - 1) % comm.size, like=x)])
    received: torch.Tensor = [work.wait() for work in posted][1]
    return received


def _compare(name: str, got: Any, expected: Any, rank: int) -> None:
    if isinstance(expected, list):
        got, expected = torch.stack(got), torch.stack(expected)
    same = got is expected if got is None or expected is None else torch.equal(torch.as_tensor(got), expected)
    if not same:
        raise _SelfTestError(f"{name} on rank {rank} returned {got}, should be {expected}")


def _compare_gradient(comm: Communicator, device: str) -> None:
    x = torch.ones(3, device=device, requires_grad=True)
    comm.all_reduce(x).wait().sum().backward()
    _compare("the gradient of all_reduce", x.grad, torch.full((3,), float(comm.size), device=device), comm.rank)


def _require_error(comm: Communicator, device: str) -> None:
    """Require that every rank raises an error if rank 0 passes a different shape."""
    try:
        comm.all_reduce(torch.ones(2 if comm.rank == 0 else 3, device=device)).wait()
    except MismatchError:
        return
    raise _SelfTestError(f"all_reduce on rank {comm.rank} of shapes that differ between ranks raised no error")


if __name__ == "__main__":
    print(exchange("cpu"))
