"""torch's settings of NCCL do not change results, and a missing rank is named in time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

from collshim import Communicator, Work
from tests.cuda_model.hardware import require_model
from tests.cuda_model.ranks import SLACK, Setting, among_gpus, device, ones, values
from tests.engine.worlds import attempt

require_model()

SECONDS, LIMIT = 2.0, 20.0
BRIEF = Setting(wait=SECONDS, rests=False)

BLOCKING = "TORCH_NCCL_BLOCKING_WAIT=1"
SETTINGS = (
    BLOCKING,
    "TORCH_NCCL_ASYNC_ERROR_HANDLING=0",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING=1",
    "TORCH_NCCL_AVOID_RECORD_STREAMS=0",
    "TORCH_NCCL_CUDA_EVENT_CACHE=0",
    "TORCH_NCCL_DESYNC_DEBUG=1",
    "TORCH_NCCL_ENABLE_MONITORING=0",
    "TORCH_NCCL_ENABLE_TIMING=1",
    "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=2",
    "TORCH_NCCL_HIGH_PRIORITY=1",
    "TORCH_NCCL_PROPAGATE_ERROR=1",
    "TORCH_NCCL_RANKS_PER_ROOT=1",
    "TORCH_NCCL_TRACE_BUFFER_SIZE=200",
    "TORCH_NCCL_USE_COMM_NONBLOCKING=1",
    "TORCH_DISTRIBUTED_DEBUG=DETAIL",
)
"""Without those that launch unmodelled kernels, or assume that the process has one GPU."""


@pytest.fixture
def chosen(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Set a variable that applies to groups made from here on."""
    setting: str = request.param
    monkeypatch.setenv(*setting.split("="))
    return setting


every = pytest.mark.parametrize("chosen", SETTINGS, indirect=True)
blocking = pytest.mark.parametrize("chosen", [BLOCKING], indirect=True)


def working(comm: Communicator) -> list[Any]:
    own = torch.full((64,), comm.rank + 1.0, device=device())
    part = comm.subgroup([1, 0])
    assert part is not None
    total, both = comm.all_reduce(own).wait(), part.all_gather(own).wait()
    message = comm.send(own, 1) if comm.rank == 0 else comm.recv(0, like=own)
    got = message.wait()
    torch.cuda.synchronize()
    part.close()
    return [total[0].item(), both[:, 0].tolist(), None if got is None else got[0].item()]


@every
def test_calls_match_those_without_settings(chosen: str) -> None:
    assert values(among_gpus(working, 2)) == [[3.0, [2.0, 1.0], None], [3.0, [2.0, 1.0], 1.0]]


def absent(comm: Communicator, told: threading.Event, call: Callable[[Communicator], Work[Any]]) -> Any:
    """Rank 1 joins no call until the others have their error."""
    comm.all_reduce(ones()).wait()
    if comm.rank == 1:
        told.wait(LIMIT)
        return None
    began = time.monotonic()
    found = attempt(lambda: call(comm).wait())
    torch.cuda.synchronize()
    took = time.monotonic() - began
    text = found.text or attempt(lambda: comm.all_reduce(ones()).wait()).text
    told.set()
    return took < SECONDS + SLACK, "rank 1 is in no collective" in text, found.raised[:1]


@every
def test_missing_rank_is_named(chosen: str) -> None:
    calls: Any = threading.Event(), lambda comm: comm.all_reduce(ones())
    raised = ("DeadlineError",) if chosen == BLOCKING else ()
    assert among_gpus(absent, 2, *calls, setting=BRIEF)[0].value == (True, True, raised)


@blocking
def test_unreceived_send_names_its_receiver(chosen: str) -> None:
    calls: Any = threading.Event(), lambda comm: comm.send(ones(), 1)
    assert among_gpus(absent, 2, *calls, setting=BRIEF)[0].value == (True, True, ("DeadlineError",))
