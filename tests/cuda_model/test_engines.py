"""torch's engines for NCCL, of which COLLSHIM_NCCL chooses one."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from collshim import Communicator
from collshim.torch_release import HAS_NCCL2
from tests.cuda_model import model
from tests.cuda_model.hardware import require_model
from tests.cuda_model.ranks import Setting, among_gpus, device, values

require_model()


def engine(comm: Communicator) -> str:
    comm.all_reduce(torch.ones(2, device=device())).wait()
    return type(comm._transport.connected_gpu_port()).__name__  # type: ignore[attr-defined]


def test_legacy_is_the_same_in_every_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLSHIM_NCCL", "legacy")
    assert values(among_gpus(engine, 2)) == ["ProcessGroupNCCL"] * 2


def test_unknown_engine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLSHIM_NCCL", "nccl3")
    for outcome in among_gpus(engine, 2):
        assert outcome.raised[0] == "ArgumentValueError"
        assert outcome.text == "COLLSHIM_NCCL is 'nccl3', should be legacy or nccl2"


@pytest.mark.skipif(HAS_NCCL2, reason="this torch has the newer engine")
def test_newer_engine_is_refused_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLSHIM_NCCL", "nccl2")
    expected = f"COLLSHIM_NCCL is 'nccl2', but torch {torch.__version__} has no ProcessGroupNCCL2"
    assert [outcome.text for outcome in among_gpus(engine, 2)] == [expected] * 2


def between_two_of_three(comm: Communicator) -> list[Any]:
    """Send from rank 0 to rank 1, also in a group of the two, while rank 2 makes no call on a GPU."""
    both = comm.subgroup([0, 1])
    if both is None:
        return []
    x, found = torch.full((2,), 10.0 + comm.rank, device=device()), []
    for one in (comm, both, comm):
        done = one.send(x, 1).wait() if one.rank == 0 else one.recv(0, like=x).wait()
        found.append(None if done is None else done.tolist())
    both.close()
    return found


@pytest.mark.skipif(not HAS_NCCL2, reason="this torch lacks the newer engine")
def test_messages_of_the_newer_engine_need_only_their_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLSHIM_NCCL", "nccl2")
    with model.setting("watchdog_tells", 1):
        found = values(among_gpus(between_two_of_three, 3, setting=Setting(checks=False)))
    assert found == [[None] * 3, [[10.0, 10.0]] * 3, []]


def lists_beside_stacks(comm: Communicator) -> list[Any]:
    """Gather into a list on rank 0, and into a stack on rank 1: both must be the same call to NCCL."""
    x = torch.full((2,), float(comm.rank), device=device())
    out = [torch.empty(2, device=device()) for _ in range(2)] if comm.rank == 0 else torch.empty(2, 2, device=device())
    found = comm.all_gather(x, out=out).wait()
    return [part.tolist() for part in found]


@pytest.mark.skipif(not HAS_NCCL2, reason="this torch lacks the newer engine")
def test_lists_of_the_newer_engine_match_stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLSHIM_NCCL", "nccl2")
    with model.setting("watchdog_tells", 1):
        found = values(among_gpus(lists_beside_stacks, 2, setting=Setting(checks=False)))
    assert found == [[[0.0, 0.0], [1.0, 1.0]]] * 2
