"""Calls of ranks that are processes of one host, back to back: collshim with the check on, torch over gloo, and MPI.

A contender makes a burst of calls, and the burst's time is divided by their number, as MPI's benchmarks do. MPI is a
contender if a virtual environment with mpi4py and an MPI is named; its ``mpiexec`` then starts the ranks.
"""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

import collshim
import collshim.torch.distributed as shim
from tests.benchmarks.measure import DEADLINE, SIZES, Cells, Contender, Samples, slowest
from tests.benchmarks.operands import Operands
from tests.benchmarks.operations import OPERATIONS
from tests.benchmarks.ranks import adapter_group, torchs_gloo
from tests.ports import free_port

GLOO, ENGINE, SHIM, BACKEND = "gloo", "collshim", "collshim.torch", "backend"
OWN = (GLOO, ENGINE, SHIM, BACKEND)
"""The contenders that are always there; any other is an MPI."""

PINGPONG = "send and recv"
CALLS = (
    "all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all", "gather", "scatter", "barrier", PINGPONG,
)  # fmt: skip
FORMS = (
    "all_reduce, async", "all_reduce, max", "all_reduce, bfloat16", "all_reduce, coalesced", "isend and irecv",
    "isend, recv from any", "batch_isend_irecv", "all_gather_object",
)  # fmt: skip
"""Calls that are measured between two processes only, up to 1 MB, and not beside an MPI."""
TURNS = 40
BURSTS = {"4 B": 50, "4 KB": 50, "64 KB": 20, "1 MB": 5, "16 MB": 1, "64 MB": 1}
"""Calls in a burst."""

Times = dict[str, Cells]
"""Seconds of a call, by name; of a message there and one back."""


class Asked(NamedTuple):
    """The measurements of a world.

    Attributes:
        calls: the names of calls; ``sizes``: those of sizes; ``turns``: the number of bursts.
        mpi: the name of the MPI; "" for none.
    """

    calls: tuple[str, ...]
    sizes: tuple[str, ...]
    turns: int
    mpi: str = ""


def measure(asked: Asked, size: int, folders: Sequence[Path] = ()) -> Iterator[Times]:
    """Measure on ``size`` ranks; with MPIs, once beside each. Yield the times of the slowest rank."""
    if not folders:
        with collshim.options(check=True):
            yield _slowest(collshim.launch(among, size, ranks="processes", args=(asked,), timeout=DEADLINE))
    for folder in folders:
        yield _beside_mpi(asked, size, folder)


def _slowest(found: Sequence[Times]) -> Times:
    return {
        name: {nbytes: slowest([rank[name][nbytes] for rank in found]) for nbytes in cells}
        for name, cells in found[0].items()
    }


def _beside_mpi(asked: Asked, size: int, folder: Path) -> Times:
    """Start the ranks by the ``mpiexec`` of a virtual environment, under this interpreter."""
    packages = next((folder / "lib").glob("python3.*/site-packages"))
    path = os.pathsep.join([os.environ.get("PYTHONPATH", os.getcwd()), str(packages)])
    variables = os.environ | {"PYTHONPATH": path, "LD_LIBRARY_PATH": str(folder / "lib"), "COLLSHIM_CHECK": "1"}
    variables |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1"}
    variables |= {"PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
    words = [str(folder / "bin" / "mpiexec"), "-n", str(size)]
    named = asked._replace(mpi=folder.name)
    program = [sys.executable, "-m", "tests.benchmarks.one_host", json.dumps(named)]
    done = subprocess.run([*words, *program], env=variables, capture_output=True, text=True, timeout=DEADLINE)
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            return {
                name: {int(nbytes): samples for nbytes, samples in cells.items()}
                for name, cells in json.loads(line).items()
            }
    raise AssertionError(f"the ranks beside {folder.name} failed:\n{done.stdout}{done.stderr}")


def among(asked: Asked) -> Times:
    """Measure one rank of a world of processes."""
    torch.set_num_threads(1)
    world, mpi = collshim.current(), _mpi() if asked.mpi else None
    found: Times = {}
    with torchs_gloo(world) as barrier, adapter_group():
        over = _over(dist.new_group(backend="collshim"))
        for name in asked.calls:
            found[name] = {}
            for size in ("4 B",) if name == "barrier" else asked.sizes:
                of = Operands(world.rank, world.size, SIZES[size])
                contenders = _contenders(name, of, world.communicator, over, mpi, asked.mpi)
                nbytes = 0 if name == "barrier" else of.nbytes
                turns = asked.turns if of.nbytes < 1 << 24 else max(3, asked.turns // 4)
                found[name][nbytes] = _in_turns(contenders, turns, BURSTS[size], barrier)
    return found


def _in_turns(contenders: Mapping[str, Contender], turns: int, calls: int, barrier: Contender) -> Samples:
    """Return this rank's times of a call; each turn starts with another contender."""
    names = list(contenders)
    for name in names:
        _burst(contenders[name], calls + 3)
    times: Samples = {name: [] for name in names}
    for turn in range(turns):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            barrier()
            contenders[name]()  # so that the ranks begin together, whatever the barrier woke up first
            times[name].append(_burst(contenders[name], calls))
    return times


def _burst(contender: Contender, calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        contender()
    return (time.perf_counter() - start) / calls


def _contenders(name: str, of: Operands, comm: Any, over: Any, mpi: Any, mpi_name: str) -> dict[str, Contender]:
    if name == PINGPONG:
        found = _pingpongs(of, comm, over)
        return found if mpi is None else {**found, mpi_name: _mpi_pingpong(mpi, of)}
    operation = OPERATIONS[name]
    operands = operation.operands(of)
    assert operation.torch is not None
    assert operation.engine is not None
    found = {
        GLOO: partial(operation.torch, dist, *operands),
        ENGINE: partial(operation.engine, comm, *operands),
        SHIM: partial(operation.torch, shim, *operands),
        BACKEND: partial(operation.torch, over, *operands),
    }
    return found if mpi is None else {**found, mpi_name: partial(_MPI_CALLS[name], mpi, *map(_array, operands))}


def _over(group: Any) -> Any:
    """Return the functions of torch.distributed on a group."""
    functions = {name: value for name, value in vars(dist).items() if isinstance(value, FunctionType)}
    named = [name for name, function in functions.items() if "group" in inspect.signature(function).parameters]
    own = SimpleNamespace(**{name: partial(getattr(dist, name), group=group) for name in named})
    own.batch_isend_irecv = dist.batch_isend_irecv
    own.P2POp = lambda function, tensor, peer: dist.P2POp(function.func, tensor, peer, group)
    return own


def _array(operand: Any) -> Any:
    """Return a tensor's NumPy array; a list's tensors in one, which is what MPI takes."""
    if isinstance(operand, list):
        return torch.stack(operand).numpy()
    return operand.numpy() if isinstance(operand, Tensor) else operand


def _mpi() -> Any:
    from mpi4py import MPI  # type: ignore[import-not-found]  # optional

    return MPI.COMM_WORLD


def _in_place() -> Any:
    from mpi4py import MPI

    return MPI.IN_PLACE


_MPI_CALLS: dict[str, Callable[..., object]] = {
    "all_reduce": lambda m, x: m.Allreduce(_in_place(), x),
    "broadcast": lambda m, x: m.Bcast(x, 0),
    "all_gather": lambda m, x, out, flat: m.Allgather(x, out),
    "reduce_scatter": lambda m, parts, flat, out: m.Reduce_scatter_block(parts, out),
    "all_to_all": lambda m, parts, out: m.Alltoall(parts, out),
    "gather": lambda m, x, out: m.Gather(x, out, 0),
    "scatter": lambda m, parts, out: m.Scatter(parts, out, 0),
    "barrier": lambda m: m.Barrier(),
}


def _pingpongs(of: Operands, comm: Any, over: Any) -> dict[str, Contender]:
    """Return a message there and one back, between neighbours."""
    tensor, peer, is_first = of.whole(), of.rank ^ 1, of.rank % 2 == 0

    def of_engine(sends: bool) -> None:
        (comm.send(tensor, peer) if sends else comm.recv(peer, out=tensor)).wait()

    def of_module(module: Any, sends: bool) -> None:
        module.send(tensor, peer) if sends else module.recv(tensor, peer)

    ends: dict[str, Callable[[bool], None]] = {
        GLOO: partial(of_module, dist),
        ENGINE: of_engine,
        SHIM: partial(of_module, shim),
        BACKEND: partial(of_module, over),
    }
    return {name: partial(_there_and_back, end, is_first) for name, end in ends.items()}


def _mpi_pingpong(mpi: Any, of: Operands) -> Contender:
    array, peer = of.whole().numpy(), of.rank ^ 1

    def end(sends: bool) -> None:
        mpi.Send(array, peer) if sends else mpi.Recv(array, peer)

    return partial(_there_and_back, end, of.rank % 2 == 0)


def _there_and_back(end: Callable[[bool], None], is_first: bool) -> None:
    end(is_first)
    end(not is_first)


def main() -> None:
    """Run one rank that ``mpiexec`` started; rank 0 prints the times."""
    asked = Asked(*json.loads(sys.argv[1]))
    mpi = _mpi()
    store = mpi.bcast(free_port() if mpi.rank == 0 else None)
    os.environ |= {"RANK": str(mpi.rank), "WORLD_SIZE": str(mpi.size), "MASTER_ADDR": "127.0.0.1"}
    local = os.environ.get("OMPI_COMM_WORLD_LOCAL_RANK", str(mpi.rank))  # Open MPI numbers a host's ranks by itself
    os.environ |= {"MASTER_PORT": str(store), "LOCAL_RANK": local, "LOCAL_WORLD_SIZE": str(mpi.size)}
    found = mpi.gather(among(asked))
    if mpi.rank == 0:
        print(json.dumps(_slowest(found)), flush=True)


if __name__ == "__main__":
    main()
