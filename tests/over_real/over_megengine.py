"""The real MegEngine on CPU ranks, its collectives carried by collshim; run only by ``python -m tests.over_real``."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import megengine as mge
import megengine.distributed as dist
import megengine.functional as F
import megengine.module as M
import numpy as np
import pytest
from megengine.autodiff import GradManager
from megengine.jit import trace
from megengine.optimizer import SGD

import collshim


@pytest.fixture(autouse=True)
def _patched() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    with collshim.patch("megengine"):
        yield


def on_two(worker: Callable[..., Any]) -> list[Any]:
    return list(dist.launcher(worker, n_gpus=2)())


def rows(rank: int, shape: tuple[int, ...] = (4, 2)) -> Any:
    return (np.arange(np.prod(shape)).reshape(shape) + 10 * rank).astype("float32")


X, Y = rows(0), rows(1)

VALUES: dict[str, tuple[dict[str, int], list[Any]]] = {
    "all_reduce_sum": ({}, [X + Y, X + Y]),
    "all_reduce_max": ({}, [Y, Y]),
    "all_reduce_min": ({}, [X, X]),
    "reduce_sum": ({}, [X + Y, None]),
    "broadcast": ({}, [X, X]),
    "all_gather": ({"axis": 1}, [np.concatenate([X, Y], 1)] * 2),
    "gather": ({"axis": 1}, [np.concatenate([X, Y], 1), None]),
    "reduce_scatter_sum": ({"axis": 1}, [(X + Y)[:, :1], (X + Y)[:, 1:]]),
    "scatter": ({"axis": 1}, [X[:, :1], X[:, 1:]]),
    "all_to_all": ({"split_axis": 1, "concat_axis": 0}, [np.concatenate([X[:, :1], Y[:, :1]]),
                                                         np.concatenate([X[:, 1:], Y[:, 1:]])]),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_collective_matches_its_manual(name: str) -> None:
    arguments, wanted = VALUES[name]

    def work() -> Any:
        result = getattr(F.distributed, name)(mge.tensor(rows(dist.get_rank())), **arguments)
        return None if result is None else result.numpy()

    for found, expected in zip(on_two(work), wanted, strict=True):
        np.testing.assert_equal(found, expected)


GRADIENTS: dict[str, list[Any]] = {
    "all_reduce_sum": [4 * (X + Y), 4 * (X + Y)],
    "all_reduce_max": [0 * X, 4 * Y],
    "reduce_sum": [2 * (X + Y), 2 * (X + Y)],
    "broadcast": [4 * X, None],
    "all_gather": [4 * X, 4 * Y],
    "gather": [2 * X, 2 * Y],
    "reduce_scatter_sum": [2 * (X + Y), 2 * (X + Y)],
    "scatter": [2 * X, None],
    "all_to_all": [2 * X, 2 * Y],
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradient_is_of_the_losses_of_all_ranks(name: str) -> None:
    def work() -> Any:
        x = mge.tensor(rows(dist.get_rank()))
        with GradManager().attach(x) as manager:
            y = getattr(F.distributed, name)(x)
            manager.backward(*([] if y is None else [(y * y).sum()]))
        return None if x.grad is None else x.grad.numpy()

    for found, expected in zip(on_two(work), GRADIENTS[name], strict=True):
        np.testing.assert_equal(found, expected)


def test_group_has_its_own_order() -> None:
    def work() -> Any:
        group = dist.new_group([1, 0])
        return F.distributed.all_gather(mge.tensor([dist.get_rank()]), group).numpy().tolist()

    assert on_two(work) == [[1, 0]] * 2


def test_gradient_flows_back_through_sends() -> None:
    def work() -> Any:
        weight = mge.Parameter([2.0])
        with GradManager().attach(weight) as manager:
            if dist.get_rank() == 0:
                F.distributed.remote_send(weight * 3, 1)
                manager.backward()
            else:
                manager.backward(F.distributed.remote_recv(0) * weight)
        return weight.grad.numpy().tolist()

    assert on_two(work) == [[6.0], [6.0]]


def test_data_parallel_training_matches_serial_training() -> None:
    data, labels = rows(0, (4, 3)) / 10, np.array([0, 1, 1, 0], "int32")

    def trained(x: Any, label: Any, callbacks: Any) -> Any:
        net = M.Linear(3, 2)
        M.init.ones_(net.weight)
        if callbacks:
            dist.bcast_list_(net.parameters())
        manager = GradManager().attach(net.parameters(), callbacks=callbacks)
        optimizer = SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            with manager:
                manager.backward(F.nn.cross_entropy(net(mge.tensor(x)), mge.tensor(label)))
            optimizer.step().clear_grad()
        return net.weight.numpy()

    def work() -> Any:
        own = slice(2 * dist.get_rank(), 2 * dist.get_rank() + 2)
        return trained(data[own], labels[own], [dist.make_allreduce_cb("mean")])

    found = on_two(work)
    serial = on_two(lambda: trained(data, labels, []))
    for weight, expected in zip(found, serial, strict=True):
        np.testing.assert_allclose(weight, expected, atol=1e-6)


def test_sync_batch_norm_sees_the_whole_batch() -> None:
    data = np.random.default_rng(0).normal(size=(4, 3, 2, 2)).astype("float32")

    def work() -> Any:
        own = slice(2 * dist.get_rank(), 2 * dist.get_rank() + 2)
        both, parts = M.BatchNorm2d(3), M.SyncBatchNorm(3)
        return both(mge.tensor(data)).numpy()[own], parts(mge.tensor(data[own])).numpy()

    for expected, found in on_two(work):
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_non_symbolic_trace_is_carried() -> None:
    def work() -> Any:
        double = trace(lambda x: F.distributed.all_reduce_sum(x * 1) * 2, symbolic=False)
        return [double(mge.tensor([float(step + dist.get_rank())])).numpy().tolist() for step in range(3)]

    assert on_two(work) == [[[2.0], [6.0], [10.0]]] * 2


def test_symbolic_trace_is_refused_by_name(capfd: pytest.CaptureFixture[str]) -> None:
    def work() -> Any:
        return trace(symbolic=True)(lambda x: F.distributed.all_reduce_sum(x * 1))(mge.tensor([1.0])).numpy()

    with pytest.raises(AssertionError, match="exit with code 1"):
        on_two(work)
    assert "use trace(symbolic=False)" in capfd.readouterr().err


def test_rank_that_failed_does_not_call_a_barrier(capfd: pytest.CaptureFixture[str]) -> None:
    server = dist.Server(port=0)

    def work(rank: int) -> None:  # the launcher would end the other process at once
        dist.init_process_group("localhost", server.py_server_port, 2, rank, rank, device_type="xpu")
        F.distributed.all_reduce_sum(mge.tensor([1.0]))
        if rank == 1:
            raise ValueError("this rank fails")
        F.distributed.all_reduce_sum(mge.tensor([1.0]))

    processes = [multiprocessing.get_context("fork").Process(target=work, args=(rank,)) for rank in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(30)
    told = capfd.readouterr().err
    assert [process.exitcode for process in processes] == [1, 1]
    assert "ValueError: this rank fails" in told
    assert "1 of 2 ranks did not arrive: rank 1 has left the world" in told
    assert "barrier" not in told


def test_everything_is_restored() -> None:
    from megengine.distributed import functional, group

    patch = collshim.patch("megengine")
    patch.undo()
    places = [functional.collective_comm, functional.apply, dist.init_process_group, dist.launcher]
    assert not any("collshim" in str(getattr(place, "__module__", "")) for place in places)
    assert "cpu" not in group._devices
    with collshim.patch("megengine") as other:
        assert functional.collective_comm.__module__.startswith("collshim.")
        assert collshim.patch("megengine") is other


SCRIPT = """
import os
import megengine as mge
import megengine.distributed as dist
import megengine.functional as F

rank, size, port = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), int(os.environ["MASTER_PORT"]) + 7
server = dist.Server(port) if rank == 0 else None
dist.init_process_group("localhost", port, size, rank, rank)
print("sum", F.distributed.all_reduce_sum(mge.tensor([rank + 1])).numpy().tolist())
dist.group_barrier()
F.distributed.all_reduce_sum(mge.tensor([rank])).numpy()  # rank 0 is the server, and ends last
"""


def test_collshim_run_patches_its_ranks(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "collshim", "run", "--patch", "megengine", "-n", "2", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, env=dict(os.environ), check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("sum [3]") == 2
