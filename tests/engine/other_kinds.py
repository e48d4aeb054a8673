"""Arrays of libraries unknown to collshim, in a separate process, because they start threads, and CUDA.

python -m tests.engine.other_kinds LIBRARY prints the results for that library's arrays as JSON.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import collshim
from collshim.arrays import as_output, as_torch, like
from tests.engine.worlds import attempt

DTYPES = ("bool", "uint8", "int8", "int16", "int32", "float32", "complex64")
"""The dtypes of every library here, including JAX without its 64-bit mode."""

Collective = Callable[[collshim.Communicator, Any], Any]


def _exchanged(comm: collshim.Communicator, x: Any, peer: int) -> Any:
    return comm.batch([collshim.Send(x, peer), collshim.Recv(peer, like=x)])[1].wait()


COLLECTIVES: dict[str, Collective] = {
    "all_reduce": lambda comm, x: comm.all_reduce(x).wait(),
    "reduce": lambda comm, x: comm.reduce(x, 0).wait(),
    "broadcast": lambda comm, x: comm.broadcast(x, 0).wait(),
    "all_gather": lambda comm, x: comm.all_gather(x).wait(),
    "all_gather_ragged": lambda comm, x: comm.all_gather_ragged(x[: comm.rank + 1, :]).wait()[0],
    "gather": lambda comm, x: comm.gather(x, 0).wait(),
    "scatter": lambda comm, x: comm.scatter([x] * comm.size if comm.rank == 0 else None, 0, like=x).wait(),
    "reduce_scatter": lambda comm, x: comm.reduce_scatter([x] * comm.size).wait(),
    "all_to_all": lambda comm, x: comm.all_to_all([x] * comm.size).wait()[0],
    "ring": lambda comm, x: _exchanged(comm, x, comm.size - 1 - comm.rank),
}


def _made(library: str, values: np.ndarray[Any, Any]) -> Any:
    namespace = importlib.import_module("jax.numpy" if library == "jax" else library)
    return namespace.asarray(values)


def _round_trip(library: str, dtype: str) -> Any:
    """Return the dtype in torch and back, the numbers, and whether both ways share memory."""
    given = _made(library, np.arange(6).reshape(2, 3).astype(dtype))
    tensor, convert = as_torch(given), like(given)
    assert convert is not None
    back = convert(tensor)
    shared = as_torch(back).data_ptr() == as_torch(given).data_ptr() == tensor.data_ptr()
    numbers = torch.view_as_real(as_torch(back).to(torch.complex64)).tolist()
    return str(tensor.dtype), str(back.dtype).rpartition(".")[2], numbers, shared


def _collectives(library: str) -> list[dict[str, Any]]:
    """Return each collective's result on each of two threads, as numbers, and whether it has its input's type."""

    def rank() -> dict[str, Any]:
        comm = collshim.current().communicator
        x = _made(library, np.full((2, 2), comm.rank + 1, np.float32))
        found = {name: attempt(scenario, comm, x) for name, scenario in COLLECTIVES.items()}
        return {name: outcome.text or _shown(outcome.value, type(x)) for name, outcome in found.items()}

    return collshim.launch(rank, 2, timeout=200)


def _shown(found: Any, kind: type) -> Any:
    return None if found is None else [as_torch(found).tolist(), isinstance(found, kind)]


def _written(library: str) -> Any:
    out = _made(library, np.zeros(3, np.float32))
    outcome = attempt(lambda: as_output(out).fill_(5))
    return [outcome.raised[:1], outcome.text, as_torch(out).tolist()]


def _without_a_gpu(library: str) -> Any:
    """Read a CuPy array that claims memory on a GPU that does not exist."""
    cupy = importlib.import_module(library)
    host = np.arange(4.0)
    memory = cupy.cuda.UnownedMemory(host.ctypes.data, host.nbytes, host, 0)
    array = cupy.ndarray((4,), memptr=cupy.cuda.MemoryPointer(memory, 0))
    comm = collshim.current().communicator
    outcomes = [attempt(as_torch, array), attempt(as_output, array), attempt(comm.all_reduce, array)]
    return [like(array) is not None, [outcome.raised[:1] for outcome in outcomes], outcomes[2].text]


def report(library: str) -> dict[str, Any]:
    if library == "cupy":
        return {"without a GPU": _without_a_gpu(library)}
    trips = {dtype: attempt(_round_trip, library, dtype) for dtype in DTYPES}
    return {
        "round trips": {dtype: outcome.text or outcome.value for dtype, outcome in trips.items()},
        "collectives": _collectives(library),
        "written": _written(library),
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps(report(sys.argv[1])))
