"""Collectives between several GPUs, captured into CUDA graphs: every replay communicates anew."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from collshim import Communicator
from collshim.transports.processes.nccl.launch import event_on
from tests.cuda_model.hardware import require_model
from tests.cuda_model.ranks import Setting, among_gpus, device, values
from tests.gpu.alone import world_of_one
from tests.gpu.scenarios import ALL, HOST_WAITS, Post, describe, given, results

require_model()

CAPTURED = sorted(set(ALL) - HOST_WAITS)


def _warm(comm: Communicator, post: Post, inputs: Sequence[torch.Tensor]) -> None:
    """Let NCCL connect the ranks outside the capture."""
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(2):
            results(post(comm, *inputs))
    torch.cuda.synchronize()


def replayed(comm: Communicator, name: str) -> list[bool]:
    inputs, graph = given(torch.float32, comm, device()), torch.cuda.CUDAGraph()
    _warm(comm, ALL[name], inputs)
    comm.barrier().wait()
    with torch.cuda.graph(graph, stream=torch.cuda.Stream(), capture_error_mode="thread_local"):
        found = results(ALL[name](comm, *inputs))
    same = list[bool]()
    for factor in (1, 5):
        for tensor in inputs:
            tensor.mul_(factor)
        graph.replay()
        torch.cuda.synchronize()
        same.append(describe(found) == describe(results(ALL[name](comm, *inputs))))
    comm.barrier().wait()
    return same


@pytest.mark.parametrize("name", CAPTURED)
@pytest.mark.parametrize("size", [2, 3])
def test_replay_communicates_current_inputs(size: int, name: str) -> None:
    assert values(among_gpus(replayed, size, name)) == [[True, True]] * size


def test_strict_capture_survives_earlier_calls() -> None:
    """The watch over earlier calls queries events while the graph is captured."""
    with world_of_one() as world:
        comm: Any = world.communicator
        x = torch.ones(4, device=device())
        _warm(comm, lambda comm, x, parts: [comm.all_reduce(x)], (x, x))
        for _ in range(20):
            graph = torch.cuda.CUDAGraph()
            for _ in range(5):
                comm.all_reduce(x).wait()
            with torch.cuda.graph(graph, stream=torch.cuda.Stream(), capture_error_mode="global"):
                found = comm.all_reduce(x).wait()
                time.sleep(0.03)
            graph.replay()
            assert found.tolist() == [1.0] * 4


def drops_a_graph(comm: Communicator) -> None:
    """Drop a graph with the group's last call, so that nothing can be queried when the group is closed."""
    inputs, graph = given(torch.float32, comm, device()), torch.cuda.CUDAGraph()
    _warm(comm, ALL["all_reduce"], inputs)
    comm.barrier().wait()
    with torch.cuda.graph(graph, stream=torch.cuda.Stream(), capture_error_mode="thread_local"):
        results(ALL["all_reduce"](comm, *inputs))
    del graph


def test_no_event_is_recorded_on_a_captured_stream() -> None:
    own, x, graph = torch.cuda.Stream(), torch.ones(4, device=device()), torch.cuda.CUDAGraph()
    assert event_on(own) is not None
    with torch.cuda.graph(graph, stream=own, capture_error_mode="thread_local"):
        x += 1
        assert event_on(own) is None
    assert event_on(own) is not None


def test_group_with_a_captured_last_call_can_be_closed() -> None:
    values(among_gpus(drops_a_graph, 2, setting=Setting(wait=5.0)))
