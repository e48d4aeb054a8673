"""Small faults in the engine's handling of streams and memory, each of which the model must report."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch

import collshim
from collshim import Communicator
from collshim.transports import streams
from collshim.transports.processes import exchange
from tests.cuda_model.hardware import require_model
from tests.cuda_model.ranks import among_gpus, device, values
from tests.cuda_model.scenarios import crossing
from tests.gpu.scenarios import ALL

require_model()

NUMBERS = 1 << 14


def nothing(*given: Any) -> None:
    """Replace a function that orders streams, or holds memory."""


def unordered(work: exchange.Exchange) -> None:
    """Replace ``_order_streams`` without a wait for NCCL."""
    work._finish()


FAULTS: dict[str, tuple[str, Callable[[pytest.MonkeyPatch], None]]] = {
    "the stream that waits does not follow": (
        "all_gather",
        lambda patch: patch.setattr(exchange, "follow", nothing),
    ),
    "a result is not held for the stream that waits": (
        "all_gather",
        lambda patch: patch.setattr(streams, "hold", nothing),
    ),
    "nobody waits for NCCL": (
        "all_reduce",
        lambda patch: patch.setattr(exchange.Exchange, "_order_streams", unordered),
    ),
    "the stream of the post does not come first": (
        "reduce_scatter_coalesced",
        lambda patch: patch.setattr(exchange, "on_stream", lambda stream: nullcontext()),
    ),
}


@pytest.mark.reports("RACE")
@pytest.mark.parametrize("name", FAULTS)
def test_nccl_fault_is_reported(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    scenario, put = FAULTS[name]
    put(monkeypatch)
    values(among_gpus(crossing, 2, ALL[scenario]))


def dropped(comm: Communicator) -> set[float]:
    """Drop input and work between threads on one GPU, and reuse their memory; nobody waits."""
    with torch.cuda.stream(torch.cuda.Stream()):
        out = torch.zeros(comm.size, NUMBERS, device=device())
        torch.cuda.current_stream().synchronize()
        comm.all_gather(torch.full((NUMBERS,), comm.rank + 1.0, device=device()), out=out).free()
        comm.barrier().wait()
        junk = [torch.full((NUMBERS,), -1.0, device=device()) for _ in range(2)]
        torch.cuda.synchronize()
        del junk
        return set(out.unique().tolist())


def test_memory_read_by_a_peer_is_held() -> None:
    assert collshim.launch(lambda: dropped(collshim.current().communicator), 3) == [{1.0, 2.0, 3.0}] * 3


@pytest.mark.reports("RACE")
def test_unheld_memory_read_by_a_peer_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "hold", nothing)
    collshim.launch(lambda: dropped(collshim.current().communicator), 3)
