"""CuPy arrays: the same memory in and out, CuPy arrays back, and CuPy's stream ordered with torch's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import collshim
from collshim import Communicator
from collshim.arrays import as_output, as_torch, like
from collshim.world import World
from tests.gpu.alone import world_of_one
from tests.gpu.hardware import DEVICE, busy, require_gpu
from tests.gpu.scenarios import ALL, HOST_WAITS, results

require_gpu(cupy=True)

DTYPES = (
    "bool",
    *("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
ROWS = 1 << 14


@pytest.fixture(scope="module")
def cupy() -> Any:
    return pytest.importorskip("cupy")


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with world_of_one() as found:
        yield found


@pytest.fixture
def comm(world: World) -> Communicator:
    return world.communicator


@pytest.mark.parametrize("dtype", DTYPES)
def test_memory_is_shared_both_ways(cupy: Any, dtype: str) -> None:
    array = (cupy.arange(12).reshape(3, 4) % 2).astype(dtype)
    tensor = as_torch(array)
    assert (str(tensor.dtype), tuple(tensor.shape), tensor.device.type) == (f"torch.{dtype}", (3, 4), "cuda")
    assert tensor.data_ptr() == array.data.ptr == as_output(array).data_ptr()
    convert = like(array)
    assert convert is not None
    back = convert(tensor)
    assert (type(back), back.dtype, back.data.ptr) == (cupy.ndarray, array.dtype, array.data.ptr)


VIEWS: dict[str, Callable[[Any], Any]] = {
    "transposed": lambda x: x.T,
    "every second": lambda x: x[::2, 1:],
    "0-d": lambda x: x[1, 1],
    "empty": lambda x: x[:0],
    "of Fortran order": lambda x: x.copy(order="F"),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_views_are_read_in_place(cupy: Any, comm: Communicator, view: Any) -> None:
    array = view(cupy.arange(12.0).reshape(3, 4))
    assert array.size == 0 or as_torch(array).data_ptr() == array.data.ptr
    assert as_torch(array).tolist() == array.tolist()
    found = comm.all_reduce(array).wait()
    assert (type(found), found.tolist()) == (cupy.ndarray, array.tolist())


def test_negative_strides_are_refused(cupy: Any) -> None:
    with pytest.raises(collshim.ArgumentValueError, match="none may be negative"):
        as_torch(cupy.arange(3.0)[::-1])


def test_expanded_array_is_not_an_output(cupy: Any, comm: Communicator) -> None:
    with pytest.raises(collshim.ArgumentValueError, match=r"expanded|read-only"):
        comm.all_reduce(cupy.ones(3), out=cupy.broadcast_to(cupy.ones(1), (3,)))


def kinds(found: Any) -> set[type]:
    if isinstance(found, list | tuple):
        return {kind for item in found for kind in kinds(item)}
    return set() if found is None else {type(found)}


def numbers_of(found: Any) -> Any:
    return [numbers_of(item) for item in found] if isinstance(found, list | tuple) else getattr(found, "tolist", str)()


KNOWN = sorted(set(ALL) - {"barrier"})


@pytest.mark.parametrize("name", KNOWN)
def test_every_collective_returns_cupy_arrays(cupy: Any, comm: Communicator, name: str) -> None:
    x = cupy.arange(18.0).reshape(6, 3)
    found = results(ALL[name](comm, x, x[None]))
    wanted = results(ALL[name](comm, torch.from_dlpack(x), torch.from_dlpack(x[None])))
    assert kinds(found) == {cupy.ndarray}
    assert numbers_of(found) == numbers_of(wanted)


def test_output_is_written_in_place(cupy: Any, comm: Communicator) -> None:
    x, out = cupy.arange(4.0), cupy.zeros(4)
    assert comm.all_reduce(x, out=out).wait() is out
    assert out.tolist() == [0, 1, 2, 3]
    assert comm.all_reduce(x, ("premul_sum", 3), out=x).wait() is x
    assert x.tolist() == [0, 3, 6, 9]


def test_large_results_are_not_copied(cupy: Any, comm: Communicator) -> None:
    """An all_gather holds only its input and its result."""
    x = cupy.ones(1 << 24, dtype="uint8")
    comm.all_gather(x).wait()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before, pool = torch.cuda.memory_allocated(), cupy.get_default_memory_pool().used_bytes()
    found = comm.all_gather(x).wait()
    assert torch.cuda.max_memory_allocated() - before == found.nbytes
    assert cupy.get_default_memory_pool().used_bytes() == pool


def busy_on(cupy: Any, stream: Any, ticks: int) -> torch.cuda.Event:
    with torch.cuda.stream(torch.cuda.ExternalStream(stream.ptr, device=DEVICE)):
        return busy(ticks)


LATE: dict[str, Any] = {
    "a result": lambda comm, x: comm.all_reduce(x).wait(),
    "an output": lambda comm, x: comm.all_reduce(x, out=x.copy()).wait(),
    "an output in place": lambda comm, x: comm.all_reduce(x, ("premul_sum", 1), out=x).wait(),
    "a list of outputs": lambda comm, x: comm.all_gather(x, out=[x.copy()]).wait()[0],
    "a stacked result": lambda comm, x: comm.all_gather(x).wait()[0],
    "an output of several": lambda comm, x: comm.all_reduce_coalesced([x], out=[x.copy()]).wait()[0],
}


@pytest.mark.parametrize("late_side", ["CuPy's", "torch's"])
@pytest.mark.parametrize("name", LATE)
def test_cupy_and_torch_streams_are_ordered(cupy: Any, comm: Communicator, name: str, late_side: str) -> None:
    """CuPy writes late and torch follows; torch is late and CuPy's next work follows."""
    theirs, ours = cupy.cuda.Stream(non_blocking=True), torch.cuda.Stream()
    for ticks in (1000, 500_000_000):
        with theirs, torch.cuda.stream(ours):
            x = cupy.zeros((ROWS, 3))
            torch.cuda.synchronize()
            _ = busy_on(cupy, theirs, ticks) if late_side == "CuPy's" else busy(ticks)
            x.fill(7.0)
            seen = LATE[name](comm, x) + 1.0
        theirs.synchronize()
        assert set(seen.ravel().tolist()) == {8.0}
        torch.cuda.synchronize()


@pytest.mark.parametrize("name", sorted(set(KNOWN) - HOST_WAITS))
def test_host_does_not_wait(cupy: Any, comm: Communicator, name: str) -> None:
    theirs = cupy.cuda.Stream(non_blocking=True)
    with theirs:
        x = cupy.ones((ROWS, 3))
        for _ in range(3):
            results(ALL[name](comm, x, x[None]))
        torch.cuda.synchronize()
        before = busy_on(cupy, theirs, 1_500_000_000)
        results(ALL[name](comm, x, x[None]))
        ahead = not before.query()
    torch.cuda.synchronize()
    assert ahead


def test_input_can_be_dropped_after_the_wait(cupy: Any, comm: Communicator) -> None:
    """CuPy reuses its memory in the order of its own stream, which must therefore follow."""
    theirs = cupy.cuda.Stream(non_blocking=True)
    with theirs:
        wrong = cupy.zeros(())
        for turn in range(50):
            x = cupy.full((ROWS, 3), float(turn))
            busy(200_000)
            work = comm.broadcast(x)
            del x
            found = work.wait()
            junk = cupy.full((ROWS, 3), -1.0)
            wrong += (found != turn).any() + (junk != -1).any()
    theirs.synchronize()
    assert float(wrong) == 0


def test_result_outlives_its_stream(cupy: Any, comm: Communicator) -> None:
    """CuPy destroys a stream with its object; torch records an event on it when the memory is free."""
    for _ in range(20):
        theirs = cupy.cuda.Stream(non_blocking=True)
        with theirs:
            x = cupy.full((ROWS, 3), 3.0)
            found = comm.all_reduce(x).wait()
            part = found[1:, ::2]
        theirs.synchronize()
        del theirs, found
        assert float(part.sum()) == 6.0 * (ROWS - 1)
        del part


def test_call_can_be_captured_into_a_graph(cupy: Any, comm: Communicator) -> None:
    x = cupy.arange(12.0)
    comm.all_reduce(x).wait()
    torch.cuda.synchronize()
    graph, ours = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with (
        torch.cuda.graph(graph, stream=ours, capture_error_mode="thread_local"),
        cupy.cuda.ExternalStream(ours.cuda_stream),
    ):
        found = comm.all_reduce(x, "avg").wait()
    x += 5
    cupy.cuda.get_current_stream().synchronize()
    graph.replay()
    torch.cuda.synchronize()
    assert found.tolist() == x.tolist()


def among_threads(cupy: Any) -> Any:
    comm = collshim.current().communicator
    x = cupy.full((4, 3), float(comm.rank))
    return comm.all_reduce(x).wait().tolist(), type(comm.all_gather(x).wait()) is cupy.ndarray


def test_thread_ranks_share_cupy_arrays(cupy: Any) -> None:
    assert collshim.launch(among_threads, 4, args=(cupy,), timeout=200) == [([[6.0] * 3] * 4, True)] * 4
