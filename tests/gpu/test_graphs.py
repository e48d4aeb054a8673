"""Collectives captured into a CUDA graph: every replay communicates anew."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from collshim import Communicator
from tests.gpu.alone import world_of_one
from tests.gpu.hardware import DEVICE, require_gpu
from tests.gpu.scenarios import ALL, HOST_WAITS, Post, describe, given, results

require_gpu()

CAPTURED = sorted(set(ALL) - HOST_WAITS - {"ring"})  # a rank's message to itself is opened by the host


@pytest.fixture(scope="module")
def comm() -> Iterator[Communicator]:
    with world_of_one() as world:
        yield world.communicator


def captured(
    post: Post, comm: Communicator, x: torch.Tensor, parts: torch.Tensor
) -> tuple[torch.cuda.CUDAGraph, object]:
    """Return the graph of one call, and its result, which every replay writes again."""
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3):
            results(post(comm, x, parts))
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        found = results(post(comm, x, parts))
    return graph, found


@pytest.mark.parametrize("name", CAPTURED)
def test_replay_communicates_current_inputs(comm: Communicator, name: str) -> None:
    x, parts = given(torch.float32, comm, DEVICE)
    graph, found = captured(ALL[name], comm, x, parts)
    for factor in (1, 5):
        x.mul_(factor)
        parts.mul_(factor)
        graph.replay()
        torch.cuda.synchronize()
        assert describe(found) == describe(results(ALL[name](comm, x, parts)))


def test_several_collectives_fit_into_one_graph(comm: Communicator) -> None:
    x = torch.ones(4, 3, device=DEVICE)

    def step(comm: Communicator, x: torch.Tensor, parts: torch.Tensor) -> list[object]:
        total = comm.all_reduce(x * 2, "avg").wait()
        return [comm.reduce_scatter(comm.all_gather(total + 1).wait())]

    graph, found = captured(step, comm, x, x[None])  # type: ignore[arg-type]
    x.fill_(10)
    graph.replay()
    torch.cuda.synchronize()
    assert describe(found) == describe([torch.full((4, 3), 21.0)], "cpu")


def test_group_with_a_captured_last_call_can_be_closed() -> None:
    with world_of_one() as world:
        x, parts = given(torch.float32, world.communicator, DEVICE)
        graph, found = captured(ALL["all_reduce"], world.communicator, x, parts)
        graph.replay()
        torch.cuda.synchronize()
        assert describe(found) == describe([x])
        del graph
